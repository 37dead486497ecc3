package cli

import (
	"runtime"
	"testing"
)

func TestGarbageHasRoomWhileLittleIsHeld(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		held uint64
		want int
	}{{0, 400}, {8 << 20, 400}, {32 << 20, 400}, {33 << 20, 300}, {60 << 20, 200}, {65 << 20, 100}, {8 << 30, 100}} {
		if got := percentFor(c.held); got != c.want {
			t.Errorf("%d MiB held: got %d percent, want %d", c.held>>20, got, c.want)
		}
	}
}

func TestEachCollectionIsSeen(t *testing.T) {
	t.Parallel()
	seen := make(chan struct{})
	stop := make(chan struct{})
	defer close(stop)
	afterEachCollection(func() {
		select {
		case seen <- struct{}{}:
		case <-stop:
		}
	})
	for got := 0; got < 3; { // the next is watched for once the last was told
		runtime.GC()
		select {
		case <-seen:
			got++
		default:
			runtime.Gosched()
		}
	}
}

package cli

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// What a server holds is small, some ten megabytes, and what short runs leave
// behind is much: with Go's defaults it collects garbage many times a second,
// a seventh of its work. So garbage may grow to four times what is held while
// that stays under roomForGarbage; above, Go's default holds again.
const (
	roomForGarbage = 128 << 20 // bytes
	seldom         = 400       // percent of what is held
	usual          = 100
)

// collectSeldom sets this process's collector, and again after each collection.
// Whoever sets GOGC decides for himself.
func collectSeldom() {
	if os.Getenv("GOGC") != "" {
		return
	}
	now := seldom
	debug.SetGCPercent(now)
	afterEachCollection(func() {
		if p := percentFor(inUse()); p != now {
			now = p
			debug.SetGCPercent(now)
		}
	})
}

// inUse is what the last collection found in use, in bytes.
func inUse() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// percentFor is how much garbage there may be, in steps so that it seldom
// changes.
func percentFor(held uint64) int {
	for p := seldom; p > usual; p -= 100 {
		if held*uint64(p)/100 <= roomForGarbage {
			return p
		}
	}
	return usual
}

// afterEachCollection calls f, never twice at once.
func afterEachCollection(f func()) {
	mark := new([64]byte) // nobody refers to it: the next collection finds it
	runtime.SetFinalizer(mark, func(*[64]byte) {
		f()
		afterEachCollection(f)
	})
}

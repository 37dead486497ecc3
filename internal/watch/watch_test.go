package watch

import "testing"

func signalled(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestFeed(t *testing.T) {
	t.Parallel()
	f := NewFeed()
	f.Moved("a") // nobody watches
	one, stopOne := f.Watch("a")
	two, stopTwo := f.Watch("a")
	other, stopOther := f.Watch("b")
	defer stopOther()
	if signalled(one) {
		t.Error("a move from before the watch is signalled")
	}
	f.Moved("a")
	f.Moved("a")
	if !signalled(one) || signalled(one) || !signalled(two) || signalled(other) {
		t.Error("two moves must be one signal to each watcher of that name, and none to others")
	}
	stopOne()
	f.Moved("a")
	if signalled(one) || !signalled(two) {
		t.Error("who has stopped is signalled, or who has not is not")
	}
	stopTwo()
	stopTwo() // twice does no harm
	if len(f.watchers) != 1 {
		t.Errorf("%d names are watched, want one: what nobody watches is forgotten", len(f.watchers))
	}
}

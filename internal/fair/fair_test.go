package fair_test

import (
	"fmt"
	"testing"

	"github.com/longstop-dev/longstop/internal/fair"
)

// TestEachBound: all, a group and one of it have a bound each.
func TestEachBound(t *testing.T) {
	t.Parallel()
	p := fair.New(fair.Limits{All: 7, Group: 3, One: 1})
	for i, c := range []struct {
		group, one string
		takes      bool
	}{
		{"a", "x", true},
		{"a", "x", false}, // it has its one
		{"a", "y", true},
		{"a", "w", true},
		{"a", "z", false}, // its group has three
		{"b", "x", true},
		{"c", "x", true},
		{"d", "x", true},
		{"e", "x", true},
		{"f", "x", false}, // there is none
	} {
		if got := p.Take(fair.Place{Group: c.group, One: c.one}); got != c.takes {
			t.Errorf("%d: %s/%s takes one: %t, want %t", i, c.group, c.one, got, c.takes)
		}
	}
	p.Give(fair.Place{Group: "a", One: "y"})
	if p.Take(fair.Place{Group: "a", One: "z"}) {
		t.Error("a group that has two takes the last")
	}
	if !p.Take(fair.Place{Group: "f", One: "x"}) {
		t.Error("a group that has none does not get the last")
	}
	if !p.Full() {
		t.Error("seven of seven are taken, and there is one left")
	}
	for _, of := range []fair.Place{{"a", "x"}, {"a", "w"}, {"b", "x"}, {"c", "x"}, {"d", "x"}, {"e", "x"}, {"f", "x"}} {
		p.Give(of)
	}
	if p.Full() {
		t.Error("none is left when all were given back")
	}
	for _, one := range []string{"x", "y", "z"} {
		if of := (fair.Place{Group: "a", One: one}); !p.Take(of) || p.Take(of) {
			t.Errorf("after that %v does not get its one", of)
		}
	}
}

// TestThoseWhoTakeAllTheyGet leave places: eight of a group to the ninth, and
// all of them most to other groups.
func TestThoseWhoTakeAllTheyGet(t *testing.T) {
	t.Parallel()
	p := fair.New(fair.Limits{All: 512, Group: 128, One: 32})
	for i := range 8 {
		of := fair.Place{Group: "a", One: fmt.Sprint("greedy ", i)}
		n := 0
		for p.Take(of) {
			n++
		}
		if n == 0 || i == 0 && n != 32 {
			t.Errorf("%s gets %d", of.One, n)
		}
	}
	if !p.Take(fair.Place{Group: "a", One: "modest"}) || !p.Take(fair.Place{Group: "b", One: "modest"}) {
		t.Error("they leave none")
	}
}

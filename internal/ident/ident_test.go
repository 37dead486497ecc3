package ident

import (
	"regexp"
	"slices"
	"sync"
	"testing"
)

func TestNewHasPrefixAndVersion7(t *testing.T) {
	t.Parallel()
	want := regexp.MustCompile(`^run_[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}$`)
	if got := New("run"); !want.MatchString(got) {
		t.Fatalf("New(run) = %q, want it to match %s", got, want)
	}
}

func TestNewSortsInTheOrderMade(t *testing.T) {
	t.Parallel()
	ids := make([]string, 20_000)
	for i := range ids {
		ids[i] = New("x")
	}
	if !slices.IsSorted(ids) {
		t.Fatal("ids made one after another are not sorted")
	}
}

func TestNewIsUniqueAcrossGoroutines(t *testing.T) {
	t.Parallel()
	const workers, each = 8, 2_000
	made := make([][]string, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for range each {
				made[w] = append(made[w], New("x"))
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for _, ids := range made {
		for _, id := range ids {
			if seen[id] {
				t.Fatalf("%s was made twice", id)
			}
			seen[id] = true
		}
	}
	if got := len(seen); got != workers*each {
		t.Fatalf("got %d ids, want %d", got, workers*each)
	}
}

package sandbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/sandbox"
)

// BenchmarkFirstUse is New and the first program, without a cache and out of
// one that is filled.
func BenchmarkFirstUse(b *testing.B) {
	for name, dir := range map[string]string{"cold": "", "warm": b.TempDir()} {
		b.Run(name, func(b *testing.B) {
			if dir != "" {
				runOnce(b, sandbox.New(sandbox.Options{CacheDir: dir}), "return 1", nil)
			}
			for b.Loop() {
				s := sandbox.New(sandbox.Options{CacheDir: dir})
				runOnce(b, s, "return 1", nil)
				_ = s.Close(context.Background())
			}
		})
	}
}

// BenchmarkRun is one program after the other, with the middle of their times.
func BenchmarkRun(b *testing.B) {
	s := sandbox.New(sandbox.Options{})
	runOnce(b, s, "return 1", nil)
	for _, c := range []struct {
		name, code string
		input      json.RawMessage
	}{
		{"small", "return {id: 1}", nil},
		{"transform500rows", "return input.rows.filter(r => r.n % 2 === 0).map(r => ({...r, label: r.name.toUpperCase()})).sort((a, b) => b.n - a.n)", rows()},
		{"loop100k", "let s = 0; for (let i = 0; i < 1e5; i++) s += i % 7; return s", nil},
		{"await1000", "for (let i = 0; i < 1000; i++) await null", nil},
	} {
		b.Run(c.name, func(b *testing.B) {
			var times []time.Duration
			for b.Loop() {
				began := time.Now()
				runOnce(b, s, c.code, c.input)
				times = append(times, time.Since(began))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
		})
	}
}

// rows is an input of 500 objects, 28 KB.
func rows() json.RawMessage {
	var all []string
	for i := range 500 {
		all = append(all, fmt.Sprintf(`{"n":%d,"name":"user %d","email":"u%d@example.com"}`, i, i, i))
	}
	return json.RawMessage(`{"rows":[` + strings.Join(all, ",") + `]}`)
}

func runOnce(b *testing.B, s *sandbox.Sandbox, code string, input json.RawMessage) {
	b.Helper()
	if _, err := s.Run(context.Background(), sandbox.Program{Code: code, Args: map[string]json.RawMessage{"input": input}}); err != nil {
		b.Fatal(err)
	}
}

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
				runOnce(b, sandbox.New(sandbox.Options{CacheDir: dir}), "return 1")
			}
			for b.Loop() {
				s := sandbox.New(sandbox.Options{CacheDir: dir})
				runOnce(b, s, "return 1")
				_ = s.Close(context.Background())
			}
		})
	}
}

// BenchmarkRun is one program after the other, with the middle of their times.
func BenchmarkRun(b *testing.B) {
	s := sandbox.New(sandbox.Options{})
	runOnce(b, s, "return 1")
	for _, c := range []struct{ name, code string }{
		{"small", "return {id: 1}"},
		{"transform500rows", "return input.rows.filter(r => r.n % 2 === 0).map(r => ({...r, label: r.name.toUpperCase()})).sort((a, b) => b.n - a.n)"},
		{"loop100k", "let s = 0; for (let i = 0; i < 1e5; i++) s += i % 7; return s"},
		{"await1000", "for (let i = 0; i < 1000; i++) await null"},
	} {
		b.Run(c.name, func(b *testing.B) {
			var times []time.Duration
			for b.Loop() {
				began := time.Now()
				runOnce(b, s, c.code)
				times = append(times, time.Since(began))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
		})
	}
}

func runOnce(b *testing.B, s *sandbox.Sandbox, code string) {
	b.Helper()
	var rows []string
	for i := range 500 {
		rows = append(rows, fmt.Sprintf(`{"n":%d,"name":"user %d","email":"u%d@example.com"}`, i, i, i))
	}
	input := json.RawMessage(`{"rows":[` + strings.Join(rows, ",") + `]}`)
	if _, err := s.Run(context.Background(), sandbox.Program{Code: code, Args: map[string]json.RawMessage{"input": input}}); err != nil {
		b.Fatal(err)
	}
}

package bench_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/longstop-dev/longstop/internal/bench"
	"github.com/longstop-dev/longstop/internal/cli"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/pgtest"
)

// asLongstop in the environment makes this test binary a longstop: benches
// start, kill and start again the binary that they measure.
const asLongstop = "LONGSTOP_BENCH_TEST_CLI"

func TestMain(m *testing.M) {
	if os.Getenv(asLongstop) != "" {
		ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		os.Exit(cli.Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// tiny measures next to nothing: whether rows come, not what they say.
func tiny(t *testing.T, only string) bench.Options {
	t.Helper()
	return bench.Options{JSON: true, Only: only, Dir: t.TempDir(), Env: []string{asLongstop + "=1"}}.Tiny()
}

func TestRowsAreWellFormed(t *testing.T) {
	t.Parallel()
	for only, want := range map[string][]string{
		"throughput/sqlite":   {"throughput/sqlite/2", "throughput/sqlite/4"},
		"throughput/postgres": {"throughput/postgres/2", "throughput/postgres/4"},
		"latency":             {"latency/sqlite/p50", "latency/sqlite/p99"},
		"idle":                {"idle/start/first", "idle/start/again", "idle/memory", "idle/cpu", "idle/binary"},
		"recovery":            {"recovery/a2a/ask/p50", "recovery/a2a/ask/p99", "recovery/a2a/attempt/p50", "recovery/a2a/attempt/p99"},
		"parked":              {"parked/opened", "parked/heap", "parked/resume/p50", "parked/resume/p99", "parked/resident", "parked/cpu"},
		"kill":                {"kill/lost", "kill/again", "kill/picked-up"},
		"growth":              {"growth/throughput", "growth/list/p99", "growth/list/deep/p99", "growth/list/workflow/p99", "growth/list/none/p99", "growth/list/other/p99", "growth/run/p99"},
		"sandbox":             {"sandbox/not-stopped", "sandbox/late"},
	} {
		t.Run(only, func(t *testing.T) {
			t.Parallel()
			o := tiny(t, only)
			if strings.HasSuffix(only, "postgres") {
				o.DatabaseURL = pgtest.URL(t)
			}
			var out bytes.Buffer
			o.Out = &out
			if _, err := bench.Run(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			checkRows(t, &out, want)
			left, err := os.ReadDir(o.Dir)
			if err != nil || len(left) > 0 {
				t.Errorf("got %v left behind (%v), want nothing", left, err)
			}
		})
	}
}

func checkRows(t *testing.T, out io.Reader, want []string) {
	t.Helper()
	d := json.NewDecoder(out)
	d.DisallowUnknownFields()
	for _, name := range want {
		var r bench.Row
		if err := d.Decode(&r); err != nil {
			t.Fatalf("the row %s: %v", name, err)
		}
		if r.Name != name || r.Value < 0 || r.Unit == "" {
			t.Errorf("got %+v, want %s with a value and a unit", r, name)
		}
		if r.Holds != nil && r.Bar == "" {
			t.Errorf("%s: a verdict without a bar", name)
		}
		if slices.Contains([]string{"kill/lost", "kill/again", "sandbox/not-stopped"}, name) && r.Value != 0 {
			t.Errorf("%s: got %g %s, want none at any size", name, r.Value, r.Unit)
		}
		if strings.HasPrefix(name, "throughput/") && (r.Floor == nil || *r.Floor <= 0 || r.Value <= 0 || r.Holds != nil) {
			t.Errorf("got %+v, want a value, a floor, and no verdict at this size", r)
		}
	}
	if rest, err := io.ReadAll(io.MultiReader(d.Buffered(), out)); err != nil || len(bytes.TrimSpace(rest)) > 0 {
		t.Errorf("got more than was expected: %s (%v)", rest, err)
	}
}

func TestATableForPeople(t *testing.T) {
	t.Parallel()
	o := tiny(t, "latency")
	var out, progress bytes.Buffer
	o.JSON, o.Out, o.Progress = false, &out, &progress
	ok, err := bench.Run(t.Context(), o)
	if err != nil || !ok {
		t.Fatalf("got %v, %v: no verdict is claimed at this size", ok, err)
	}
	for _, part := range []string{"NAME", "latency/sqlite/p50", "at most 1.5 ms", "not the bar's size"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("no %q in\n%s", part, &out)
		}
	}
	if !strings.Contains(progress.String(), "latency: one run at a time") {
		t.Errorf("the progress does not say what is measured:\n%s", &progress)
	}
}

func TestWhatCannotBeMeasuredIsSaid(t *testing.T) {
	t.Parallel()
	for only, part := range map[string]string{"speed": "latency", "throughput/postgres": "--database-url"} {
		o := tiny(t, only)
		o.Out = io.Discard
		_, err := bench.Run(t.Context(), o)
		if flow.CodeOf(err) != flow.CodeInvalid || !strings.Contains(err.Error(), part) {
			t.Errorf("--only %s: got %v, want an error that names %s", only, err, part)
		}
	}
}

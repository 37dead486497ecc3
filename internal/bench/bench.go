// Package bench measures Longstop against the bars that it sets itself. Every
// figure that has a floor is measured beside it in the same run: what a loop
// reaches that does nothing but write the same rows.
package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/show"
)

// Options say what is measured and how it is told.
type Options struct {
	Out         io.Writer // the rows
	Progress    io.Writer // what happens meanwhile, for people; nil for silence
	JSON        bool      // one JSON object a row, each as soon as it is known; else a table at the end
	Quick       bool      // smaller sizes, which claim no verdict where the size is the bar's
	Only        string    // a bench's name, or the part before its slash; "" for all
	DatabaseURL string    // a PostgreSQL database to measure too, in schemas that are made and dropped
	Dir         string    // where databases are made; default the system's folder for temporary files

	// Binary and Env start a longstop: default this process's own binary.
	Binary string
	Env    []string // added to the environment

	sizes *sizes
}

// Row is one figure.
type Row struct {
	Name  string   `json:"name"`  // such as throughput/sqlite/64
	Value float64  `json:"value"` // in Unit
	Unit  string   `json:"unit"`
	Bar   string   `json:"bar"`   // what the value should be; "" if it is told for information
	Holds *bool    `json:"holds"` // null where no verdict is claimed
	Floor *float64 `json:"floor"` // what the same writes reach without an engine, in Unit; null if there is none
	Note  string   `json:"note,omitempty"`
}

// bench is one thing that can be measured by itself.
type bench struct {
	name  string
	about string
	run   func(context.Context, *bed) error
}

// benches lists them in the order in which they are run: what is quick and
// quiet first.
func benches() []bench {
	return []bench{
		{"idle", "start, memory and size of the binary", idle},
		{"throughput/sqlite", "runs of three no-op steps, beside the floor", sqliteThroughput},
		{"throughput/postgres", "the same on PostgreSQL", postgresThroughput},
		{"latency", "one run at a time", latency},
		{"recovery", "what recovery adds before and after an agent's answer", recoveryOverhead},
		{"parked", "many open gates", parked},
		{"kill", "kill -9 with runs in flight, and a restart", killed},
		{"growth", "many finished runs", growth},
		{"sandbox", "attacks on the sandbox", attacks},
	}
}

// Names lists the benches, for help.
func Names() []string {
	var out []string
	for _, b := range benches() {
		out = append(out, b.name)
	}
	return out
}

// Run measures, and reports whether every row that claims a verdict holds. Its
// error says what could not be measured.
func Run(ctx context.Context, o Options) (ok bool, err error) {
	chosen, err := o.chosen()
	if err != nil {
		return false, err
	}
	if o.sizes == nil {
		o.sizes = fullSizes()
		if o.Quick {
			o.sizes = quickSizes()
		}
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	dir, err := os.MkdirTemp(o.Dir, "longstop-bench-")
	if err != nil {
		return false, flow.Errorf(flow.CodeUnavailable, "no folder can be made for the databases").At("--dir").Because(err)
	}
	b := &bed{Options: o, sizes: *o.sizes, dir: dir, began: time.Now()}
	defer func() { err = errors.Join(err, b.clear()) }()
	for _, one := range chosen {
		b.say("%s: %s", one.name, one.about)
		if err := one.run(ctx, b); err != nil {
			return false, fmt.Errorf("%s: %w", one.name, err)
		}
	}
	if !o.JSON {
		b.table()
	}
	return b.failed == 0, nil
}

// chosen gives the benches that Only names. PostgreSQL is measured where there
// is one.
func (o Options) chosen() ([]bench, error) {
	var out []bench
	for _, one := range benches() {
		group, _, _ := strings.Cut(one.name, "/")
		switch {
		case o.Only != "" && o.Only != one.name && o.Only != group:
		case one.name == "throughput/postgres" && o.DatabaseURL == "":
			if o.Only == one.name {
				return nil, flow.Errorf(flow.CodeInvalid, "there is no PostgreSQL database to measure").At("--database-url").
					Right("name one, or run make bench, which starts a cluster")
			}
		default:
			out = append(out, one)
		}
	}
	if len(out) == 0 {
		return nil, flow.Errorf(flow.CodeInvalid, "there is no bench %q", o.Only).At("--only").Right("one of " + strings.Join(Names(), ", "))
	}
	return out, nil
}

// bed is what the benches share.
type bed struct {
	Options
	sizes  sizes
	dir    string
	began  time.Time
	rows   []Row
	failed int
	made   int      // databases
	drops  []func() // what to undo at the end
}

// say tells what happens.
func (b *bed) say(format string, args ...any) {
	fmt.Fprintf(b.Progress, "%7.1fs  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

// add takes a row: its verdict is kept only if it was measured at the bar's
// size.
func (b *bed) add(r Row, sized bool) error {
	if !sized && r.Holds != nil {
		r.Holds = nil
		r.Note = strings.TrimPrefix(r.Note+"; not the bar's size", "; ")
	}
	if r.Holds != nil && !*r.Holds {
		b.failed++
	}
	b.rows = append(b.rows, r)
	b.say("  %s", strings.Join(cells(r), "  "))
	if !b.JSON {
		return nil
	}
	return json.NewEncoder(b.Out).Encode(r)
}

// atMost makes a row whose bar is an upper bound.
func atMost(name string, value float64, unit string, bound float64) Row {
	holds := value <= bound
	return Row{Name: name, Value: value, Unit: unit, Bar: fmt.Sprintf("at most %g %s", bound, unit), Holds: &holds}
}

// told makes a row without a bar.
func told(name string, value float64, unit string) Row {
	return Row{Name: name, Value: value, Unit: unit}
}

// over gives the row with its floor.
func (r Row) over(floor float64) Row {
	r.Floor = &floor
	return r
}

func (b *bed) table() {
	var rows [][]string
	for _, r := range b.rows {
		rows = append(rows, cells(r))
	}
	show.Table(b.Out, show.InkFor(b.Out), []string{"NAME", "VALUE", "UNIT", "BAR", "HOLDS", "FLOOR", "NOTE"}, rows)
}

func cells(r Row) []string {
	holds, floor := "", ""
	if r.Holds != nil {
		holds = map[bool]string{true: "yes", false: "NO"}[*r.Holds]
	}
	if r.Floor != nil {
		floor = figure(*r.Floor)
	}
	return []string{r.Name, figure(r.Value), r.Unit, r.Bar, holds, floor, r.Note}
}

// figure writes a value with the digits that mean something.
func figure(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// clear drops what was made.
func (b *bed) clear() error {
	for i := len(b.drops) - 1; i >= 0; i-- {
		b.drops[i]()
	}
	return os.RemoveAll(b.dir)
}

package store

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// filled gives a value whose every member is set, those of members too.
func filled[T any](t *testing.T) T {
	t.Helper()
	var v T
	var fill func(reflect.Value)
	fill = func(f reflect.Value) {
		switch at := f.Addr().Interface().(type) {
		case *time.Time:
			*at = time.Date(2026, 2, 3, 4, 5, 6, 789_000_000, time.UTC)
			return
		case *json.RawMessage:
			*at = json.RawMessage(`{"a":[1,"\u003c"]}`)
			return
		}
		switch f.Kind() {
		case reflect.String:
			f.SetString("te\"xt\u2028<é>")
		case reflect.Int, reflect.Int64:
			f.SetInt(-4711)
		case reflect.Float64:
			f.SetFloat(12.345)
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
			fill(f.Elem())
		case reflect.Struct:
			for i := range f.NumField() {
				fill(f.Field(i))
			}
		default:
			t.Fatalf("%s: a member of a kind that is new here: teach this test and the writer", f.Type())
		}
	}
	fill(reflect.ValueOf(&v).Elem())
	return v
}

// TestTheJournalIsWrittenAsTheLibraryWould: a member that flow.Event or
// flow.Log gets and that the writer by hand does not know fails here.
func TestTheJournalIsWrittenAsTheLibraryWould(t *testing.T) {
	t.Parallel()
	var events []flow.Event
	var logs []flow.Log
	full, fullLog := filled[flow.Event](t), filled[flow.Log](t)
	for _, text := range []string{"", "plain", `"\/`, "a\x00\x1f\x7f\n", "<&>", "\xff\u2029", "😀"} {
		full.Type, full.Iteration, fullLog.Message, fullLog.Title = text, text, text, text
		events, logs = append(events, full, flow.Event{Type: text}), append(logs, fullLog, flow.Log{StepID: text})
	}
	for _, ms := range []float64{0, 1, 0.001, 1e-7, -1, 123456789.125, 1e21, math.MaxFloat64} {
		fullLog.DurationMS = ms
		logs = append(logs, fullLog)
	}
	for _, source := range []flow.Source{flow.SourceNone, flow.SourceBYOA, flow.SourceBuiltin, flow.SourceHuman} {
		fullLog.RecoverySource = source
		logs = append(logs, fullLog)
	}
	for n := range len(logs) + 1 {
		compareText(t, logs[:n], logsText)
	}
	for n := range len(events) + 1 {
		compareText(t, events[:n], eventsText)
	}
}

func compareText[T any](t *testing.T, v []T, write func([]T) (string, error)) {
	t.Helper()
	if v == nil {
		v = []T{}
	}
	want, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	got, err := write(v)
	if err != nil || got != string(want) {
		t.Fatalf("got %s (%v)\nwant %s", got, err, want)
	}
}

func TestWhatIsNoJSONIsNotWritten(t *testing.T) {
	t.Parallel()
	for name, event := range map[string]flow.Event{
		"data": {Data: json.RawMessage(`{`)},
		"time": {At: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		if got, err := eventsText([]flow.Event{event}); err == nil {
			t.Errorf("%s: got %s, want an error", name, got)
		}
	}
	if got, err := logsText([]flow.Log{{DurationMS: math.NaN()}}); err == nil {
		t.Errorf("got %s, want an error", got)
	}
}

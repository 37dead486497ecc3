package store

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// What every transition writes is made into JSON by hand, in the same bytes as
// encoding/json would give: through reflection it is a twelfth of the time of
// a short run. A test holds the two against each other, member by member. Only
// data, which is JSON already, stays as it is.

// jsonText builds a JSON text; the first error stays.
type jsonText struct {
	strings.Builder
	err     error
	scratch [64]byte // for numbers and instants
}

// name begins a member: first tells whether it is the object's first.
func (t *jsonText) name(first bool, name string) {
	if !first {
		t.WriteByte(',')
	}
	t.WriteByte('"')
	t.WriteString(name)
	t.WriteString(`":`)
}

func (t *jsonText) text(s string) {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			t.any(s)
			return
		}
	}
	t.WriteByte('"')
	t.WriteString(s)
	t.WriteByte('"')
}

// any writes what is seldom or odd as the library does.
func (t *jsonText) any(v any) {
	b, err := json.Marshal(v)
	if err != nil && t.err == nil {
		t.err = err
	}
	t.Write(b)
}

func (t *jsonText) number(n int64) { t.Write(strconv.AppendInt(t.scratch[:0], n, 10)) }

func (t *jsonText) instant(at time.Time) {
	if y := at.Year(); y < 0 || y > 9999 {
		t.any(at) // an error
		return
	}
	t.WriteByte('"')
	t.Write(at.UTC().AppendFormat(t.scratch[:0], time.RFC3339Nano))
	t.WriteByte('"')
}

// optional writes a text member that is left out when it is empty.
func (t *jsonText) optional(name, s string) {
	if s != "" {
		t.name(false, name)
		t.text(s)
	}
}

func eventsText(events []flow.Event) (string, error) {
	var t jsonText
	size := 2
	for i := range events {
		size += 110 + len(events[i].Type) + len(events[i].Iteration) + len(events[i].Data)
	}
	t.Grow(size)
	t.WriteByte('[')
	for i := range events {
		if i > 0 {
			t.WriteByte(',')
		}
		t.event(&events[i])
	}
	t.WriteByte(']')
	return t.String(), t.err
}

func (t *jsonText) event(e *flow.Event) {
	t.WriteByte('{')
	t.name(true, "seq")
	t.number(e.Seq)
	t.name(false, "type")
	t.text(e.Type)
	t.name(false, "at")
	t.instant(e.At)
	if e.StepIndex != nil {
		t.name(false, "stepIndex")
		t.number(int64(*e.StepIndex))
	}
	t.optional("iteration", e.Iteration)
	if len(e.Data) > 0 {
		t.name(false, "data")
		if json.Valid(e.Data) {
			t.Write(e.Data)
		} else {
			t.any(e.Data) // an error
		}
	}
	t.WriteByte('}')
}

func logsText(logs []flow.Log) (string, error) {
	var t jsonText
	t.Grow(2 + 256*len(logs))
	t.WriteByte('[')
	for i := range logs {
		if i > 0 {
			t.WriteByte(',')
		}
		t.log(&logs[i])
	}
	t.WriteByte(']')
	return t.String(), t.err
}

func (t *jsonText) log(l *flow.Log) {
	t.WriteByte('{')
	t.name(true, "seq")
	t.number(l.Seq)
	t.name(false, "at")
	t.instant(l.At)
	t.name(false, "stepIndex")
	t.number(int64(l.StepIndex))
	t.optional("iteration", l.Iteration)
	t.name(false, "stepId")
	t.text(l.StepID)
	t.name(false, "type")
	t.text(l.Type)
	t.optional("title", l.Title)
	t.name(false, "attempt")
	t.number(int64(l.Attempt))
	t.name(false, "status")
	t.text(l.Status)
	t.name(false, "recovery_source")
	if l.RecoverySource == flow.SourceNone {
		t.WriteString("null")
	} else {
		t.text(string(l.RecoverySource))
	}
	t.optional("message", l.Message)
	t.optional("error", l.Error)
	if l.StartedAt != nil {
		t.name(false, "startedAt")
		t.instant(*l.StartedAt)
	}
	t.name(false, "durationMs")
	if ms := l.DurationMS; ms >= 0 && ms < 1e15 && (ms == 0 || ms >= 1e-6) {
		t.Write(strconv.AppendFloat(t.scratch[:0], ms, 'f', -1, 64))
	} else {
		t.any(ms)
	}
	t.WriteByte('}')
}

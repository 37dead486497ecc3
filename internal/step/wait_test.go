package step

import (
	"testing"
	"time"
)

func TestWait(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config string
		until  time.Time // zero: does not wait
		value  string
	}{
		{`{"for": "90s"}`, now().Add(90 * time.Second), `{"until":"2026-03-01T09:01:30Z"}`},
		{`{"for": "1d12h"}`, now().Add(36 * time.Hour), `{"until":"2026-03-02T21:00:00Z"}`},
		{`{"for": "30d"}`, now().Add(30 * 24 * time.Hour), `{"until":"2026-03-31T09:00:00Z"}`},
		{`{"for": "0s"}`, time.Time{}, `{"until":"2026-03-01T09:00:00Z"}`},
		{`{"until": "2026-03-01T10:00:01+01:00"}`, now().Add(time.Second), `{"until":"2026-03-01T09:00:01Z"}`},
		{`{"until": "2020-01-01T00:00:00Z"}`, time.Time{}, `{"until":"2020-01-01T00:00:00Z"}`},
	} {
		out, err := NewTable(Deps{}).Run(t.Context(), "wait", callOf(c.config))
		if err != nil {
			t.Errorf("%s: %v", c.config, err)
			continue
		}
		if !out.Until.Equal(c.until) || string(out.Value) != c.value {
			t.Errorf("%s: got %s, %s; want %s, %s", c.config, out.Until, out.Value, c.until, c.value)
		}
	}
}

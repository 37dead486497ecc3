package step

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// decode reads a resolved config. Members that the struct does not know are
// passed over: the definition was checked against the schema, a mend by the
// guard.
func decode[T any](c flow.Call) (T, *flow.StepError) {
	var config T
	err := json.Unmarshal(c.Config, &config)
	if err == nil {
		return config, nil
	}
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Field != "":
		return config, failf(flow.KindConfig, "config.%s: a JSON %s is not right here", wrong.Field, wrong.Value)
	case errors.As(err, &wrong):
		return config, failf(flow.KindConfig, "config: must be an object, not a JSON %s", wrong.Value)
	}
	return config, because(failf(flow.KindConfig, "config: not a valid JSON object"), err)
}

// absent reports whether a member is not there, or null.
func absent(raw json.RawMessage) bool {
	return len(raw) == 0 || string(raw) == "null"
}

// encode writes a value as it stands: no HTML escapes, numbers untouched.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// text is a text as JSON.
func text(s string) json.RawMessage {
	raw, _ := encode(s) // a string can always be written
	return raw
}

// steps is a list of nested steps. Whoever runs a type keeps them apart: a
// type names the list that runs next.
type steps []json.RawMessage

func (steps) schema() object {
	return object{"type": "array", "items": object{"type": "object"}}
}

// scalars is one string, number or boolean, or a list of them, as texts;
// null is none.
type scalars []string

func (scalars) schema() object {
	scalar := object{"type": []string{"string", "number", "boolean", "null"}}
	return object{"anyOf": []any{scalar, object{"type": "array", "items": scalar}}}
}

// UnmarshalJSON reads a scalar or a list of scalars.
func (s *scalars) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '[' {
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil {
			return err
		}
		*s = scalars{}
		for _, one := range list {
			if len(one) > 0 && one[0] == '[' {
				return &json.UnmarshalTypeError{Value: "list in a list"}
			}
			if err := s.add(one); err != nil {
				return err
			}
		}
		return nil
	}
	*s = nil
	return s.add(raw)
}

func (s *scalars) add(raw json.RawMessage) error {
	switch {
	case absent(raw):
		return nil
	case raw[0] == '{':
		return &json.UnmarshalTypeError{Value: "object"}
	case raw[0] == '"':
		var v string
		if err := json.Unmarshal(raw, &v); err != nil {
			return err
		}
		*s = append(*s, v)
		return nil
	}
	*s = append(*s, string(raw)) // a number or boolean reads as it is written
	return nil
}

// duration is a length of time as text: Go's units, and d for days of 24
// hours, as in "90s", "1h30m", "2d", "1d12h".
type duration string

func (duration) schema() object {
	return object{"type": "string", "pattern": `\{\{|^\s*([0-9]+d)?([0-9]+(\.[0-9]+)?(h|ms|us|µs|ns|m|s))*\s*$`,
		"examples": []string{"90s", "1h30m", "2d"}}
}

// parse gives the duration; its error says what would be right.
func (d duration) parse() (time.Duration, error) {
	s := string(d)
	wrong := fmt.Errorf("%q is not a duration such as 90s, 1h30m or 2d", firstRunes(s, 40))
	s = strings.TrimSpace(s)
	days, rest, found := strings.Cut(s, "d")
	if !found {
		days, rest = "", s
	}
	var total time.Duration
	if found {
		n, err := strconv.ParseUint(days, 10, 31)
		if err != nil || n > 100_000 {
			return 0, wrong
		}
		total = time.Duration(n) * 24 * time.Hour
	}
	if rest == "" && found {
		return total, nil
	}
	v, err := time.ParseDuration(rest)
	if err != nil || v < 0 {
		return 0, wrong
	}
	return total + v, nil
}

package secret_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/secret"
)

const (
	hidden = "late-value-0123456789"
	number = "4815162342"
	id     = "run_0123456789abcdef0123456789abcdef"
)

func masker() *secret.Masker {
	return secret.NewMasker(map[string]string{"late": hidden, "number": number, "an_id": id}, nil)
}

// fill puts the secret into every text at any depth of v, and an instant, a
// number or true wherever there is one.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		if v.Type() == reflect.TypeFor[string]() {
			v.SetString("a " + hidden + " b")
		} else {
			v.SetString("word")
		}
	case reflect.Int, reflect.Int64:
		v.SetInt(4815162342)
	case reflect.Float64:
		v.SetFloat(4815162342)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Interface:
		v.Set(reflect.ValueOf(map[string]any{hidden: []any{hidden, 4815162342.0, json.Number(number), nil, true}}))
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.Set(reflect.ValueOf(json.RawMessage(`{"` + hidden + `":["` + hidden + `",` + number + `]}`)))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key)
		fill(t, value)
		v.SetMapIndex(key, value)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
			return
		}
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	default:
		t.Fatalf("fill does not know what to do with a %s", v.Type())
	}
}

// Whatever member a case, a gate or an event has or will have, none keeps a
// secret, and what comes out is read again as what it was.
func TestNoMemberKeepsASecret(t *testing.T) {
	t.Parallel()
	for _, v := range []any{&flow.Case{}, &flow.Gate{}, &flow.VaultEvent{}, &flow.Event{}, &flow.Log{}, &flow.Run{}, &flow.StepInstance{}} {
		t.Run(reflect.TypeOf(v).Elem().Name(), func(t *testing.T) {
			t.Parallel()
			fill(t, reflect.ValueOf(v).Elem())
			before := fmt.Sprintf("%+v", v)
			out := secret.Masked(masker(), v)
			raw, err := json.Marshal(out)
			if err != nil {
				t.Fatal(err)
			}
			// What JSON leaves out is looked at too.
			if text := fmt.Sprintf("%s %+v", raw, out); strings.Contains(text, hidden) {
				t.Errorf("it keeps the secret: %s", text)
			}
			again := reflect.New(reflect.TypeOf(v).Elem()).Interface()
			if err := json.Unmarshal(raw, again); err != nil {
				t.Errorf("it cannot be read again: %v in %s", err, raw)
			}
			if after := fmt.Sprintf("%+v", v); after != before {
				t.Errorf("what was given has been changed: got %s, want %s", after, before)
			}
		})
	}
}

func TestMaskedKeepsWhatIsNoText(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	cause := errors.New(hidden)
	type kind string
	type page struct {
		ID, RunID, Next, TokenID string
		Kind                     kind
		At                       time.Time
		Size                     int64
		Bytes                    []byte
		Cause                    error
		Text                     string
		own                      string
	}
	in := &page{ID: id, RunID: id, Next: id, TokenID: hidden, Kind: hidden, At: at, Size: 4815162342, Bytes: []byte(hidden), Cause: cause, Text: id, own: hidden}
	want := page{ID: id, RunID: id, Next: id, TokenID: "[secret:late]", Kind: hidden, At: at, Size: 4815162342, Bytes: []byte(hidden), Cause: cause, Text: "[secret:an_id]", own: hidden}
	if got := secret.Masked(masker(), in); !reflect.DeepEqual(*got, want) {
		t.Errorf("got %+v, want %+v", *got, want)
	}
	numbers := secret.Masked[any](masker(), map[string]any{"a": 4815162342.0, "b": json.Number(number), "c": 1.5})
	if want := (map[string]any{"a": "[secret:number]", "b": "[secret:number]", "c": 1.5}); !reflect.DeepEqual(numbers, want) {
		t.Errorf("numbers: got %v, want %v", numbers, want)
	}
}

func TestMaskedGivesWhatHasNoSecretItself(t *testing.T) {
	t.Parallel()
	in := &flow.Case{Input: flow.RecoveryInput{PriorOutputs: map[string]string{"0": "x"}}, Asked: []flow.Asked{{Target: "y"}}, Before: map[string]any{"z": "z"}}
	if got := secret.Masked(masker(), in); got != in {
		t.Errorf("got another case")
	}
	if got := secret.Masked(nil, in); got != in {
		t.Errorf("without a masker: got another case")
	}
	var none any
	if got := secret.Masked(masker(), none); got != nil {
		t.Errorf("nothing: got %v", got)
	}
}

package secret

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Masker takes the values of a workspace's secrets out of texts and JSON. It
// is immutable and safe for concurrent use; the nil Masker masks nothing, as
// does one without secrets, at no cost.
type Masker struct {
	values  map[string]string // that Unmask puts back
	numbers map[string]string // values that are JSON numbers, and their names
	find    *finder
}

// NewMasker makes a Masker of secrets, name to value, and of hidden, values
// which are masked too but which Unmask never puts back (the token of the
// workspace's agent, headers of its MCP servers). A value shorter than
// [MinLength] is left out: such a one is refused when it is made.
func NewMasker(secrets, hidden map[string]string) *Masker {
	m := &Masker{values: map[string]string{}, numbers: map[string]string{}}
	find := newFinder()
	for _, group := range []map[string]string{hidden, secrets} { // of two names for one value, a secret's wins
		for _, name := range slices.Backward(slices.Sorted(maps.Keys(group))) {
			value := group[name]
			if len(value) < MinLength {
				continue
			}
			if _, ok := secrets[name]; ok {
				m.values[name] = secrets[name]
			}
			for _, text := range []string{value, strings.TrimSpace(value)} { // a line's end is often lost on the way
				for _, form := range forms(text) {
					find.add(form, Mask(name))
				}
			}
			if json.Valid([]byte(value)) && strings.IndexByte("-0123456789", value[0]) >= 0 {
				m.numbers[value] = name
			}
		}
	}
	if len(find.patterns) > 0 {
		m.find = find
	}
	return m
}

// Mask is the text that stands for the secret called name.
func Mask(name string) string { return "[secret:" + name + "]" }

func (m *Masker) empty() bool { return m == nil || m.find == nil }

// Text gives s with each secret's value replaced by its mask, the longest
// value first, in whatever form it turns up: as it is, or escaped for JSON, a
// URL or HTML, or in base64, where the value may be a part of what was encoded.
func (m *Masker) Text(s string) string {
	if m.empty() {
		return s
	}
	if out, changed := replace(m.find, s); changed {
		return out
	}
	return s
}

// JSON gives raw with the secrets' values masked in its keys, in its strings
// and where a number is a value. The result is valid JSON: raw that is not
// comes back masked as one JSON string. Nothing masked gives raw itself.
func (m *Masker) JSON(raw json.RawMessage) json.RawMessage {
	if m.empty() || len(raw) == 0 || m.clean(raw) {
		return raw
	}
	if !json.Valid(raw) {
		return quote(m.Text(string(raw)))
	}
	var numbers edit
	if len(m.numbers) > 0 {
		numbers = func(number []byte) (string, bool) {
			name, ok := m.numbers[string(number)]
			return Mask(name), ok
		}
	}
	return rewrite(raw, func(text []byte) (string, bool) { return replace(m.find, text) }, numbers)
}

// clean reports, by one look over the bytes, that there is nothing to mask;
// where there are escapes it cannot tell.
func (m *Masker) clean(raw []byte) bool {
	return len(m.numbers) == 0 && bytes.IndexByte(raw, '\\') < 0 && !m.find.any(raw)
}

// Unmask puts the values of secrets back where raw, valid JSON, has exactly
// their masks in its strings and keys, and gives the names that it used,
// sorted. A mask of a name that is no secret stays as it is. The caller
// decides beforehand, by the names, whether these secrets may go where raw
// goes. A number that was masked comes back as a string.
func (m *Masker) Unmask(raw json.RawMessage) (json.RawMessage, []string) {
	if m == nil || len(m.values) == 0 || !json.Valid(raw) {
		return raw, nil
	}
	masks := regexp.MustCompile(`\[secret:([^\[\]]{1,256})\]`)
	used := map[string]bool{}
	out := rewrite(raw, func(text []byte) (string, bool) {
		changed := false
		s := masks.ReplaceAllStringFunc(string(text), func(mask string) string {
			name := masks.FindStringSubmatch(mask)[1]
			value, ok := m.values[name]
			if !ok {
				return mask
			}
			used[name], changed = true, true
			return value
		})
		return s, changed
	}, nil)
	return out, slices.Sorted(maps.Keys(used))
}

package secret

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// Masked gives v with the secrets' values masked in every text that it holds,
// at any depth: in plain strings, in the keys of maps, and in JSON. What v
// shares with others is copied before it is changed; nothing masked gives v
// itself.
//
// A new member is masked without being named anywhere. What remains are values
// of types of their own (statuses, kinds), numbers, instants, causes of errors,
// what is not exported, with a type that is embedded and not exported, and ids
// of ours: in a field named ID, ...ID or Next, a text that is nothing but one.
func Masked[T any](m *Masker, v T) T {
	if m.empty() {
		return v
	}
	w, holder := walk{m}, reflect.ValueOf(&v).Elem()
	if out, changed := w.value(holder); changed {
		holder.Set(out)
	}
	return v
}

type walk struct{ m *Masker }

// value gives v masked, and whether that is another.
func (w walk) value(v reflect.Value) (reflect.Value, bool) {
	switch v.Kind() {
	case reflect.String:
		if v.Type() != reflect.TypeFor[string]() && v.Type() != reflect.TypeFor[json.Number]() {
			return v, false
		}
		text := w.m.Text(v.String())
		return reflect.ValueOf(text).Convert(v.Type()), text != v.String()
	case reflect.Interface:
		return w.inside(v)
	case reflect.Pointer:
		if v.IsNil() {
			return v, false
		}
		to, changed := w.value(v.Elem())
		if !changed {
			return v, false
		}
		out := reflect.New(v.Type().Elem())
		out.Elem().Set(to)
		return out, true
	case reflect.Struct:
		return w.fields(v)
	case reflect.Slice, reflect.Array:
		return w.items(v)
	case reflect.Map:
		return w.pairs(v)
	}
	return v, false
}

// inside masks what an interface holds. A number of decoded JSON that is a
// secret becomes a text, as in [Masker.JSON].
func (w walk) inside(v reflect.Value) (reflect.Value, bool) {
	if v.IsNil() || v.Type() == reflect.TypeFor[error]() {
		return v, false
	}
	number := ""
	switch n := v.Interface().(type) {
	case json.Number:
		number = n.String()
	case float64:
		number = strconv.FormatFloat(n, 'f', -1, 64)
	}
	name, found := w.m.numbers[number]
	switch {
	case found && v.NumMethod() == 0:
		return reflect.ValueOf(Mask(name)), true
	case number != "":
		return v, false
	}
	return w.value(v.Elem())
}

func (w walk) fields(v reflect.Value) (reflect.Value, bool) {
	out, any := v, false
	for i := range v.NumField() {
		if !v.Field(i).CanInterface() { // not exported
			continue
		}
		masked, changed := w.value(v.Field(i))
		if !changed || w.isID(v.Type().Field(i).Name, v.Field(i)) {
			continue
		}
		if !any {
			out, any = reflect.New(v.Type()).Elem(), true
			out.Set(v)
		}
		out.Field(i).Set(masked)
	}
	return out, any
}

// isID reports whether a field holds nothing but an id of ours.
func (walk) isID(field string, v reflect.Value) bool {
	return v.Kind() == reflect.String && (field == "Next" || strings.HasSuffix(field, "ID")) &&
		regexp.MustCompile(`^[a-z]+_[0-9a-f]{32}$`).MatchString(v.String())
}

func (w walk) items(v reflect.Value) (reflect.Value, bool) {
	if v.Type().Elem().Kind() == reflect.Uint8 { // of bytes only those that are JSON
		if v.Type() != reflect.TypeFor[json.RawMessage]() {
			return v, false
		}
		raw := v.Interface().(json.RawMessage)
		masked := w.m.JSON(raw)
		return reflect.ValueOf(masked), string(masked) != string(raw)
	}
	out, any := v, false
	for i := range v.Len() {
		masked, changed := w.value(v.Index(i))
		if !changed {
			continue
		}
		if !any {
			out, any = reflect.New(v.Type()).Elem(), true
			if v.Kind() == reflect.Slice {
				out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			}
			reflect.Copy(out, v)
		}
		out.Index(i).Set(masked)
	}
	return out, any
}

func (w walk) pairs(v reflect.Value) (reflect.Value, bool) {
	type pair struct{ key, value reflect.Value }
	var all []pair
	any := false
	for it := v.MapRange(); it.Next(); {
		key, other := w.value(it.Key())
		value, changed := w.value(it.Value())
		all, any = append(all, pair{key, value}), any || other || changed
	}
	if !any {
		return v, false
	}
	out := reflect.MakeMapWithSize(v.Type(), len(all))
	for _, p := range all {
		out.SetMapIndex(p.key, p.value)
	}
	return out, true
}

package definition

import (
	"strconv"
	"strings"
)

// maxWeight bounds how many subschemas may look at one value: thirty
// definitions that each refer twice to the next would be a billion.
const maxWeight = 20_000

// weigh counts the most subschemas that a single value of a schema may be
// checked against. References out of the schema count one.
func weigh(doc any) int {
	w := weigher{doc: doc, known: map[string]int{}}
	heaviest := 0
	w.all(doc, "", func(place string, schema any) {
		heaviest = max(heaviest, w.weight(place, schema))
	})
	return heaviest
}

type weigher struct {
	doc   any
	known map[string]int // by pointer; 1 while it is being weighed
}

// all visits every object of the schema with its pointer.
func (w *weigher) all(v any, place string, visit func(string, any)) {
	switch v := v.(type) {
	case map[string]any:
		visit(place, v)
		for k, one := range v {
			w.all(one, place+"/"+escape(k), visit)
		}
	case []any:
		for i, one := range v {
			w.all(one, place+"/"+strconv.Itoa(i), visit)
		}
	}
}

func (w *weigher) weight(place string, schema any) int {
	if n, ok := w.known[place]; ok {
		return n
	}
	w.known[place] = 1
	object, _ := schema.(map[string]any)
	sum := 1
	add := func(where string, v any) { sum = min(sum+w.weight(where, v), maxWeight+1) }
	for key, v := range object {
		here := place + "/" + escape(key)
		switch key {
		case "not", "if", "then", "else":
			add(here, v)
		case "allOf", "anyOf", "oneOf":
			list, _ := v.([]any)
			for i, one := range list {
				add(here+"/"+strconv.Itoa(i), one)
			}
		case "dependentSchemas":
			members, _ := v.(map[string]any)
			for k, one := range members {
				add(here+"/"+escape(k), one)
			}
		case "$ref", "$dynamicRef":
			if target, _ := v.(string); strings.HasPrefix(target, "#") {
				if found, ok := lookup(w.doc, target[1:]); ok {
					add(target[1:], found)
				}
			}
		}
	}
	w.known[place] = sum
	return sum
}

// lookup follows a JSON pointer.
func lookup(doc any, pointer string) (any, bool) {
	if pointer == "" {
		return doc, true
	}
	if pointer[0] != '/' {
		return nil, false
	}
	for _, t := range strings.Split(pointer[1:], "/") {
		t = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
		switch v := doc.(type) {
		case map[string]any:
			next, ok := v[t]
			if !ok {
				return nil, false
			}
			doc = next
		case []any:
			i, err := strconv.Atoi(t)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			doc = v[i]
		default:
			return nil, false
		}
	}
	return doc, true
}

func escape(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

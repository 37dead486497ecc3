package expr

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// maxNested is how deep a computed value may be nested: as deep as the
// standard library reads JSON.
const maxNested = 10_000

// native turns a CEL value into decoded JSON. left is as for spend.
func native(v ref.Val, left *int, depth int) (any, *Error) {
	if depth > maxNested {
		return nil, tooLarge()
	}
	var out any
	switch v := v.(type) {
	case types.Null:
		out = nil
	case types.Bool:
		out = bool(v)
	case types.String:
		out = string(v)
	case types.Int:
		out = json.Number(strconv.FormatInt(int64(v), 10))
	case types.Uint:
		out = json.Number(strconv.FormatUint(uint64(v), 10))
	case types.Double:
		n, err := number(float64(v))
		if err != nil {
			return nil, err
		}
		out = n
	case types.Bytes:
		out = base64.StdEncoding.EncodeToString(v)
	case types.Timestamp:
		out = v.Time.UTC().Format(time.RFC3339Nano)
	case types.Duration:
		out = v.Duration.String()
	case *types.Optional:
		if v.HasValue() {
			return native(v.GetValue(), left, depth+1)
		}
		out = nil
	case traits.Mapper:
		return nativeMap(v, left, depth)
	case traits.Lister:
		return nativeList(v, left, depth)
	default:
		return nil, &Error{Message: fmt.Sprintf("the expression gives %s, which is no JSON value", typeOf(v))}
	}
	if !spend(out, left) {
		return nil, tooLarge()
	}
	return out, nil
}

func number(f float64) (json.Number, *Error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return "", &Error{Message: "the expression gives a number that JSON does not have", Fix: "neither infinite nor NaN"}
	}
	raw, err := json.Marshal(f)
	if err != nil {
		return "", &Error{Message: "the expression gives a number that JSON does not have"}
	}
	return json.Number(raw), nil
}

func nativeMap(m traits.Mapper, left *int, depth int) (any, *Error) {
	if same, ok := m.Value().(map[string]any); ok { // straight out of the scope
		if !spend(same, left) {
			return nil, tooLarge()
		}
		return same, nil
	}
	object := map[string]any{}
	for it := m.Iterator(); it.HasNext() == types.True; {
		k := it.Next()
		key, ok := k.(types.String)
		if !ok {
			return nil, &Error{Message: fmt.Sprintf("the expression gives an object with %s as a key", typeOf(k)), Fix: "string(x)"}
		}
		if *left -= len(key) + 4; *left < 0 {
			return nil, tooLarge()
		}
		v, err := native(m.Get(k), left, depth+1)
		if err != nil {
			return nil, err
		}
		object[string(key)] = v
	}
	return object, nil
}

func nativeList(l traits.Lister, left *int, depth int) (any, *Error) {
	if same, ok := l.Value().([]any); ok {
		if _, cel := first(same).(ref.Val); !cel {
			if !spend(same, left) {
				return nil, tooLarge()
			}
			return same, nil
		}
	}
	list := []any{}
	for it := l.Iterator(); it.HasNext() == types.True; {
		if *left--; *left < 0 {
			return nil, tooLarge()
		}
		v, err := native(it.Next(), left, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

func first(list []any) any {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

// typeOf names the kind of a CEL value.
func typeOf(v ref.Val) string {
	switch v.(type) {
	case types.Null:
		return "null"
	case types.String:
		return "a string"
	case types.Bool:
		return "a boolean"
	case types.Int, types.Uint, types.Double:
		return "a number"
	case traits.Mapper:
		return "an object"
	case traits.Lister:
		return "a list"
	}
	return "a " + v.Type().TypeName()
}

package expr

import (
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// maxText is how long a text may get inside of a condition, in bytes. CEL's
// own library of such functions lets one call multiply a text without end.
const maxText = 8 << 20

// functions are ours beside CEL's own, as members of a text or list, named
// as CEL's string library names them:
//
//	"Ab".lowerAscii()  "Ab".upperAscii()  " a ".trim()
//	"a,b".split(",")   ["a", "b"].join(",")   "aXb".replace("X", "-")
func functions() []cel.EnvOption {
	text, list := cel.StringType, cel.ListType(cel.StringType)
	unary := func(name string, f func(string) string) cel.EnvOption {
		return cel.Function(name, cel.MemberOverload("ours_"+name, []*cel.Type{text}, text,
			cel.UnaryBinding(func(v ref.Val) ref.Val { return bounded(f(string(v.(types.String)))) })))
	}
	return []cel.EnvOption{
		unary("lowerAscii", func(s string) string { return ascii(s, 'A', 'Z', 'a'-'A') }),
		unary("upperAscii", func(s string) string { return ascii(s, 'a', 'z', 'A'-'a') }),
		unary("trim", strings.TrimSpace),
		cel.Function("split", cel.MemberOverload("ours_split", []*cel.Type{text, text}, list,
			cel.BinaryBinding(func(s, by ref.Val) ref.Val {
				parts := strings.Split(string(s.(types.String)), string(by.(types.String)))
				return types.NewStringList(types.DefaultTypeAdapter, parts)
			}))),
		cel.Function("join", cel.MemberOverload("ours_join", []*cel.Type{list, text}, text,
			cel.BinaryBinding(func(l, by ref.Val) ref.Val { return join(l.(traits.Lister), string(by.(types.String))) }))),
		cel.Function("replace", cel.MemberOverload("ours_replace", []*cel.Type{text, text, text}, text,
			cel.FunctionBinding(func(args ...ref.Val) ref.Val {
				return replace(string(args[0].(types.String)), string(args[1].(types.String)), string(args[2].(types.String)))
			}))),
	}
}

// ascii moves the letters from first to last by a distance.
func ascii(s string, first, last, by rune) string {
	return strings.Map(func(r rune) rune {
		if r >= first && r <= last {
			return r + by
		}
		return r
	}, s)
}

func bounded(s string) ref.Val {
	if len(s) > maxText {
		return textTooLong()
	}
	return types.String(s)
}

func textTooLong() ref.Val {
	return types.NewErrFromString(fmt.Sprintf("a text grows over %d MiB", maxText>>20))
}

func replace(s, from, to string) ref.Val {
	if n := strings.Count(s, from); len(to) > len(from) && n > (maxText-len(s))/(len(to)-len(from)) {
		return textTooLong()
	}
	return types.String(strings.ReplaceAll(s, from, to))
}

func join(l traits.Lister, by string) ref.Val {
	var b strings.Builder
	for i, it := 0, l.Iterator(); it.HasNext() == types.True; i++ {
		s, ok := it.Next().(types.String)
		if !ok {
			return types.NewErrFromString("no such overload: join takes texts; string(x) makes one")
		}
		if i > 0 {
			b.WriteString(by)
		}
		if b.WriteString(string(s)); b.Len() > maxText {
			return textTooLong()
		}
	}
	return types.String(b.String())
}

// costs charges our functions by what they read and write, as CEL charges
// its own: a tenth of a byte.
type costs struct{}

// CallCost is nil for functions that are not ours.
func (costs) CallCost(_, overload string, args []ref.Val, result ref.Val) *uint64 {
	if !strings.HasPrefix(overload, "ours_") {
		return nil
	}
	size := uint64(10)
	for _, v := range append([]ref.Val{result}, args...) {
		switch v := v.(type) {
		case types.String:
			size += uint64(len(v))
		case traits.Lister:
			if n, ok := v.Size().(types.Int); ok {
				size += 10 * uint64(n)
			}
		}
	}
	size /= 10
	return &size
}

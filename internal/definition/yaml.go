package definition

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

// readYAML reads the nodes only: decoding into Go values would turn dates
// into times and lose the text of numbers.
func readYAML(src []byte) (v *value, wrong *bad) {
	defer func() { // a large parser in front of anybody's text
		if p := recover(); p != nil {
			v, wrong = nil, badAt(0, "this YAML cannot be read", "")
		}
	}()
	var document yaml.Node
	if err := yaml.Load(src, &document); err != nil {
		return nil, yamlError(src, err)
	}
	if document.Kind != yaml.DocumentNode || len(document.Content) != 1 {
		return nil, badAt(1, "the definition is empty", "it needs name and steps")
	}
	var r yamlReader
	return r.value(document.Content[0], 0)
}

func yamlError(src []byte, err error) *bad {
	switch text := err.Error(); {
	case strings.Contains(text, "found multiple"):
		return badAt(0, "more than one YAML document", "one definition a file, without ---")
	case strings.Contains(text, "no documents"):
		return badAt(1, "the definition is empty", "it needs name and steps")
	}
	var load *yaml.LoadError
	if errors.As(err, &load) {
		line := load.Mark.Line
		if line == 0 {
			line = load.ContextMark.Line
		}
		b := badAt(line, "not valid YAML: "+clip(load.Message), "indent with spaces, quote texts that hold : # { } [ ] or begin with a sign")
		switch {
		case strings.Contains(load.Message, "tab"), tabbed(src, line):
			b.Fix = "indent with spaces"
		case strings.Contains(load.Message, "max depth"):
			b.Message, b.Fix = "nested too deep", fmt.Sprintf("at most %d levels", maxDepth)
		case strings.Contains(load.Message, "anchor"):
			b.Fix = "quote a text that begins with *"
		case strings.Contains(load.Message, "control characters"):
			b.Fix = "remove it, or write it as an escape in double quotes"
		}
		return b
	}
	return badAt(0, "not valid YAML: "+clip(err.Error()), "")
}

// tabbed tells whether a line is indented with a tab.
func tabbed(src []byte, line int) bool {
	lines := bytes.Split(src, []byte("\n"))
	if line < 1 || line > len(lines) {
		return false
	}
	return bytes.HasPrefix(bytes.TrimLeft(lines[line-1], " "), []byte("\t"))
}

type yamlReader struct{ builder }

func (r *yamlReader) value(n *yaml.Node, depth int) (*value, *bad) {
	line := n.Line
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	v, err := r.make(null, line, depth)
	if err != nil {
		return nil, err
	}
	if n.Style&yaml.TaggedStyle != 0 && n.ShortTag() != "!!str" {
		return nil, badAt(line, fmt.Sprintf("the tag %s is not understood here", clip(n.ShortTag())), "values are what JSON has; quote a text that begins with !")
	}
	switch n.Kind {
	case yaml.ScalarNode:
		return r.scalar(v, n)
	case yaml.SequenceNode:
		v.kind = list
		for _, one := range n.Content {
			item, err := r.value(one, depth+1)
			if err != nil {
				return nil, err
			}
			v.items = append(v.items, item)
		}
		return v, nil
	case yaml.MappingNode:
		return r.object(v, n, depth)
	}
	return nil, badAt(line, "this YAML is not understood here", "values are what JSON has")
}

func (r *yamlReader) object(v *value, n *yaml.Node, depth int) (*value, *bad) {
	v.kind = object
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode {
			return nil, badAt(key.Line, "a key must be a text", `quote texts that begin with {{ : "{{ input.x }}"`)
		}
		if key.ShortTag() == "!!merge" {
			return nil, badAt(key.Line, "merge keys (<<) are not understood here", "write the members, or use an alias for the whole value")
		}
		member, err := r.value(n.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		if err := v.add(key.Value, key.Line, member, seen); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// scalar reads plain scalars as JSON would, and everything else as a text.
func (r *yamlReader) scalar(v *value, n *yaml.Node) (*value, *bad) {
	v.text = n.Value
	if n.Style != 0 { // quoted, a block, or tagged as a text
		v.kind = text
		return v, nil
	}
	switch n.ShortTag() {
	case "!!null":
		v.kind, v.text = null, ""
	case "!!bool":
		v.kind, v.text = boolean, strings.ToLower(n.Value)
		if v.text != "true" && v.text != "false" {
			v.kind, v.text = text, n.Value
		}
	case "!!int", "!!float":
		if !jsonNumber.MatchString(n.Value) {
			return nil, badAt(n.Line, fmt.Sprintf("%s is a number in YAML but not in JSON", clip(n.Value)), fmt.Sprintf("write %q if it is a text, else as JSON writes numbers", clip(n.Value)))
		}
		v.kind = number
	default: // dates too
		v.kind = text
		if jsonNumber.MatchString(n.Value) {
			v.kind = number // too large for YAML's own kinds
		}
	}
	return v, nil
}

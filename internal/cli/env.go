package cli

import (
	"strings"

	"github.com/alecthomas/kong"
)

// environment gives every flag that names none of its own an environment
// variable: LONGSTOP, the command's words and the flag, so that the one for
// --limit of runs list is LONGSTOP_RUNS_LIST_LIMIT and nothing is set by
// accident for another command. What asks for help or the version has none.
func environment() kong.Option {
	return kong.PostBuild(func(k *kong.Kong) error {
		nameFlags(k.Model.Node, []string{"LONGSTOP"})
		return nil
	})
}

func nameFlags(n *kong.Node, words []string) {
	for _, f := range n.Flags {
		if len(f.Envs) > 0 || asks(f) {
			continue
		}
		f.Envs = []string{envName(append(words[:len(words):len(words)], f.Name))}
		f.Value.Tag.Envs = f.Envs
	}
	for _, child := range n.Children {
		nameFlags(child, append(words[:len(words):len(words)], child.Name))
	}
}

// asks reports that a flag is a question instead of a setting.
func asks(f *kong.Flag) bool { return f.Name == "help" || f.Name == "version" }

func envName(words []string) string {
	return strings.ToUpper(strings.ReplaceAll(strings.Join(words, "_"), "-", "_"))
}

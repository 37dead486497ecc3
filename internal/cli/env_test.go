package cli

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// model is the tree of commands as the parser knows it.
func model(t *testing.T) *kong.Application {
	t.Helper()
	var cmd commands
	parser, err := kong.New(&cmd, kong.Vars{"version": "test"}, environment())
	if err != nil {
		t.Fatal(err)
	}
	return parser.Model
}

func TestEveryFlagHasAnEnvironmentVariable(t *testing.T) {
	t.Parallel()
	right := regexp.MustCompile(`^LONGSTOP_[A-Z0-9]+(_[A-Z0-9]+)*$`)
	flags := map[string]string{} // variable to flag
	n := 0
	var walk func(*kong.Node)
	walk = func(node *kong.Node) {
		for _, f := range node.Flags {
			if asks(f) {
				continue
			}
			n++
			if len(f.Envs) != 1 || !right.MatchString(f.Envs[0]) {
				t.Errorf("%s --%s: got the variables %v, want one that begins with LONGSTOP_", node.FullPath(), f.Name, f.Envs)
				continue
			}
			if other, had := flags[f.Envs[0]]; had && other != f.Name {
				t.Errorf("%s is for --%s and for --%s", f.Envs[0], other, f.Name)
			}
			flags[f.Envs[0]] = f.Name
		}
		for _, child := range node.Children {
			walk(child)
		}
	}
	walk(model(t).Node)
	if n < 100 {
		t.Errorf("got %d flags, want all there are", n)
	}
	for env, flag := range map[string]string{"LONGSTOP_ENDPOINT": "endpoint", "LONGSTOP_JSON": "json", "LONGSTOP_RUNS_LIST_LIMIT": "limit", "LONGSTOP_KEYS_CREATE_ROLE": "role",
		"LONGSTOP_LISTEN": "listen"} {
		if flags[env] != flag {
			t.Errorf("%s: got --%s, want --%s", env, flags[env], flag)
		}
	}
}

// TestTheEnvironmentIsRead goes from a variable to what a command does with it.
func TestTheEnvironmentIsRead(t *testing.T) {
	t.Setenv("LONGSTOP_DATA", t.TempDir())
	t.Setenv("LONGSTOP_KEYS_CREATE_ROLE", "viewer")
	t.Setenv("LONGSTOP_JSON", "true")
	var out, errs bytes.Buffer
	if code := Main(t.Context(), []string{"keys", "create", "of the environment"}, strings.NewReader(""), &out, &errs); code != exitOK {
		t.Fatalf("got %d: %s", code, errs.String())
	}
	if got := out.String(); !strings.Contains(got, `"role": "viewer"`) {
		t.Errorf("got %s, want JSON of a viewer's key", got)
	}
	out.Reset()
	if code := Main(t.Context(), []string{"keys", "create", "x", "--role", "operator"}, strings.NewReader(""), &out, io.Discard); code != exitOK || !strings.Contains(out.String(), `"role": "operator"`) {
		t.Errorf("a flag goes before its variable: got %d %s", code, out.String())
	}
	t.Setenv("LONGSTOP_KEYS_CREATE_ROLE", "boss")
	if code := Main(t.Context(), []string{"keys", "create", "x"}, strings.NewReader(""), io.Discard, &errs); code != exitUsage || !strings.Contains(errs.String(), "boss") {
		t.Errorf("a wrong value: got %d %s, want 2 and what is wrong", code, errs.String())
	}
}

// Package house holds no code: its tests read the repository itself and
// check the rules that keep the tree showing the architecture (who may import
// whom, no hidden state, documented names, nothing of one machine).
package house

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/longstop-dev/longstop"

// source is one file of the repository; ast and fset are set for Go files.
type source struct {
	path string // from the root, with slashes
	text string
	ast  *ast.File
	fset *token.FileSet
}

// folder gives the package's folder from the root.
func (s source) folder() string { return path.Dir(s.path) }

func (s source) isGo() bool   { return strings.HasSuffix(s.path, ".go") }
func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// generated tells whether a program wrote this Go file.
func (s source) generated() bool {
	return strings.HasSuffix(s.path, "_templ.go") || s.ast != nil && ast.IsGenerated(s.ast)
}

// at gives path:line of a place in a Go file.
func (s source) at(p token.Pos) string {
	pos := s.fset.Position(p)
	return pos.String()
}

// functionAt gives the name of the function that holds a place in a Go file,
// its doc comment included; "" outside of functions. Methods have none.
func (s source) functionAt(p token.Pos) string {
	for _, decl := range s.ast.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Recv != nil {
			continue
		}
		start := f.Pos()
		if f.Doc != nil {
			start = f.Doc.Pos()
		}
		if start <= p && p < f.End() {
			return f.Name.Name
		}
	}
	return ""
}

// parse makes a source out of text, which tests of the rules themselves
// hand in directly.
func parse(path, text string) (source, error) {
	s := source{path: path, text: text}
	if !s.isGo() {
		return s, nil
	}
	s.fset = token.NewFileSet()
	file, err := parser.ParseFile(s.fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
	s.ast = file
	return s, err
}

// repository reads every text file that git tracks or would add, in the order
// of their paths.
func repository(t *testing.T) []source {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	// A clone that belongs to someone else must be readable too.
	list := exec.Command("git", "-c", "safe.directory=*", "ls-files", "-z",
		"--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatalf("git ls-files in %s: %v (these tests need the git checkout)", root, err)
	}
	var all []source
	for _, name := range strings.Split(strings.TrimRight(string(out), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		if bytes.IndexByte(text, 0) >= 0 {
			continue // not text
		}
		s, err := parse(name, string(text))
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		all = append(all, s)
	}
	if len(all) < 10 {
		t.Fatalf("git lists %d text files in %s, want the whole repository", len(all), root)
	}
	return all
}

// goFiles keeps the Go files outside of testdata that keep accepts.
func goFiles(all []source, keep func(source) bool) []source {
	var kept []source
	for _, s := range all {
		if s.isGo() && !strings.Contains("/"+s.path, "/testdata/") && keep(s) {
			kept = append(kept, s)
		}
	}
	return kept
}

// report fails the test with every offence, one a line.
func report(t *testing.T, offences []string) {
	t.Helper()
	for _, o := range offences {
		t.Error(o)
	}
}

// broken is a case for a rule itself: source text and what the rule must say.
type broken struct {
	name string
	path string
	text string
	want string // part of the only offence; "" for none
}

// prove checks that a rule finds what each case breaks, and nothing else.
func prove(t *testing.T, rule func([]source) []string, cases []broken) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, err := parse(c.path, c.text)
			if err != nil {
				t.Fatal(err)
			}
			got := rule([]source{s})
			switch {
			case c.want == "" && len(got) > 0:
				t.Errorf("got %q, want no offence", got)
			case c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)):
				t.Errorf("got %q, want one offence with %q", got, c.want)
			}
		})
	}
}

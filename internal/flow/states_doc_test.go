package flow_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/flow"
)

const statesDoc = "../../docs/state_machine.md"

// section is the part of the document under a heading of the second level.
func section(t *testing.T, heading string) string {
	t.Helper()
	raw, err := os.ReadFile(statesDoc)
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(raw), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("%s has no section %q", statesDoc, heading)
	}
	text, _, _ := strings.Cut(after, "\n## ")
	return text
}

// moves gives each status's followers as lines "from -> to", and the
// beginnings under "new".
func moves[S ~string](all []S, next func(S) []S) []string {
	var out []string
	for _, from := range append([]S{""}, all...) {
		for _, to := range next(from) {
			out = append(out, name(string(from))+" -> "+string(to))
		}
	}
	return out
}

func name(s string) string {
	if s == "" || s == "[*]" || s == "(new)" {
		return "new"
	}
	return s
}

// compare tells what is in one list only.
func compare(t *testing.T, what string, doc, tables []string) {
	t.Helper()
	for _, line := range doc {
		if !slices.Contains(tables, line) {
			t.Errorf("%s of %s has %q, which the tables of package flow do not allow", what, statesDoc, line)
		}
	}
	for _, line := range tables {
		if !slices.Contains(doc, line) {
			t.Errorf("package flow allows %q, which is not in %s of %s", line, what, statesDoc)
		}
	}
	if slices.Sort(doc); len(slices.Compact(slices.Clone(doc))) != len(doc) {
		t.Errorf("%s of %s says something twice: %q", what, statesDoc, doc)
	}
}

// checkStates compares the picture and the table of a section with a state
// table; ends are the statuses in which the picture ends.
func checkStates(t *testing.T, heading string, tables, ends []string) {
	t.Helper()
	text := section(t, heading)
	var drawn, drawnEnds, rows []string
	for _, m := range regexp.MustCompile(`(?m)^ +(\S+) --> (\S+?)(: .*)?$`).FindAllStringSubmatch(text, -1) {
		if m[2] == "[*]" {
			drawnEnds = append(drawnEnds, m[1])
		} else {
			drawn = append(drawn, name(m[1])+" -> "+m[2])
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^\| (\S+) \| (\w+) \| \S.* \|$`).FindAllStringSubmatch(text, -1) {
		if m[1] != "from" {
			rows = append(rows, name(m[1])+" -> "+m[2])
		}
	}
	compare(t, "the picture", drawn, tables)
	compare(t, "the ends in the picture", drawnEnds, ends)
	compare(t, "the table", rows, slices.DeleteFunc(slices.Clone(tables), func(line string) bool { return line == "new -> pending" }))
}

func TestTheDocumentHasTheTables(t *testing.T) {
	t.Parallel()
	var ends []string
	for _, s := range flow.RunStatuses() {
		if s.Finished() {
			ends = append(ends, string(s))
		}
	}
	checkStates(t, "A run", moves(flow.RunStatuses(), flow.RunStatus.Next), ends)

	ends = nil
	for _, s := range flow.StepStatuses() {
		if s.Done() || s == flow.StepFailed {
			ends = append(ends, string(s))
		}
	}
	checkStates(t, "A step instance", append(moves(flow.StepStatuses(), flow.StepStatus.Next), "new -> pending"), ends)

	ends = nil
	for _, s := range flow.GateStatuses() {
		if len(s.Next()) == 0 {
			ends = append(ends, string(s))
		}
	}
	checkStates(t, "A gate", moves(flow.GateStatuses(), flow.GateStatus.Next), ends)
}

// constants gives the values of the string constants of a type, from the
// source of this package.
func constants(t *testing.T, of string) []string {
	t.Helper()
	names, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, entry := range names {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), entry.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 || fmt.Sprint(spec.Type) != of {
				return true
			}
			if lit, ok := spec.Values[0].(*ast.BasicLit); ok {
				out = append(out, strings.Trim(lit.Value, `"`))
			}
			return true
		})
	}
	return out
}

// TestListsAreWhole holds that a status or phase which is added is in its list
// and in the document.
func TestListsAreWhole(t *testing.T) {
	t.Parallel()
	for of, list := range map[string]string{"RunStatus": fmt.Sprint(flow.RunStatuses()), "StepStatus": fmt.Sprint(flow.StepStatuses()), "GateStatus": fmt.Sprint(flow.GateStatuses())} {
		if got := fmt.Sprint(constants(t, of)); got != list {
			t.Errorf("%s: the constants are %s, the list is %s", of, got, list)
		}
	}
	var rows []string
	for _, m := range regexp.MustCompile(`(?m)^\| (\S+) \| [^|]+ \|$`).FindAllStringSubmatch(section(t, "A step instance"), -1) {
		if m[1] != "phase" {
			rows = append(rows, strings.Trim(strings.Replace(m[1], "(attempt)", "", 1), " "))
		}
	}
	compare(t, "the phases", rows, constants(t, "Phase"))
}

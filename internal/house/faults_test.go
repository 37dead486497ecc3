package house

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// faultsDoc is the catalogue of faults: each row of its tables is a fault and
// the tests that hold it.
const faultsDoc = "docs/faults.md"

// checkFaults lists rows of the catalogue that name no test, or one that is
// not there: `folder/file_test.go:TestName/subtest`, where the name of the
// subtest must stand in that file.
func checkFaults(files []source) []string {
	byPath := map[string]source{}
	for _, f := range files {
		byPath[f.path] = f
	}
	named := regexp.MustCompile("`([^`]+_test\\.go):(\\w+)(?:/([^`]+))?`")
	var offences []string
	rows := 0
	for i, line := range strings.Split(byPath[faultsDoc].text, "\n") {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "| Fault") || strings.HasPrefix(line, "|--") {
			continue
		}
		rows++
		at := fmt.Sprintf("%s:%d", faultsDoc, i+1)
		tests := named.FindAllStringSubmatch(line, -1)
		if len(tests) == 0 {
			offences = append(offences, at+": the row names no test")
		}
		for _, m := range tests {
			if what := missing(byPath[m[1]], m[2], m[3]); what != "" {
				offences = append(offences, fmt.Sprintf("%s: %s: %s", at, m[0], what))
			}
		}
	}
	if rows == 0 {
		offences = append(offences, faultsDoc+": there is no row in it")
	}
	return offences
}

// missing says what of a test is not there.
func missing(f source, name, sub string) string {
	if f.ast == nil {
		return "there is no such file"
	}
	has := false
	for _, d := range f.ast.Decls {
		fn, ok := d.(*ast.FuncDecl)
		has = has || ok && fn.Recv == nil && fn.Name.Name == name
	}
	if !has || !strings.HasPrefix(name, "Test") && !strings.HasPrefix(name, "Fuzz") {
		return "there is no such test in the file"
	}
	found := sub == ""
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			text, err := strconv.Unquote(lit.Value)
			found = found || err == nil && text == sub
		}
		return !found
	})
	if !found {
		return "there is no such subtest in the file"
	}
	return ""
}

func TestFaultsAreHeld(t *testing.T) {
	t.Parallel()
	report(t, checkFaults(repository(t)))
}

func TestFaultsRule(t *testing.T) {
	t.Parallel()
	code, err := parse("internal/p/a_test.go", "package p\nfunc TestX(t *testing.T) { t.Run(\"a b\", nil) }\nfunc helper() {}\n")
	if err != nil {
		t.Fatal(err)
	}
	head := "# Faults\n| Fault | Test |\n|---|---|\n"
	for row, want := range map[string]string{
		"| a | `internal/p/a_test.go:TestX` |":     "",
		"| a | `internal/p/a_test.go:TestX/a b` |": "",
		"| a | `internal/p/a_test.go:TestX/a` |":   "no such subtest",
		"| a | `internal/p/a_test.go:TestY` |":     "no such test in",
		"| a | `internal/p/a_test.go:helper` |":    "no such test in",
		"| a | `internal/p/b_test.go:TestX` |":     "no such file",
		"| a | see the code |":                     "names no test",
		"":                                         "no row",
	} {
		got := checkFaults([]source{code, {path: faultsDoc, text: head + row + "\n"}})
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.Contains(got[0], want)) {
			t.Errorf("%q: got %q, want one offence with %q", row, got, want)
		}
	}
}

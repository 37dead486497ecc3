package house

import (
	"fmt"
	"go/ast"
	"strings"
	"testing"
)

// maxLines is the most that a file of code may have; most have far fewer.
const maxLines = 600

// checkTests lists tests that sleep to wait, and those that skip.
func checkTests(files []source) []string {
	var offences []string
	for _, f := range files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			switch called(call.Fun) {
			case "time.Sleep":
				offences = append(offences, f.at(call.Pos())+": time.Sleep in a test: wait on a signal or a channel, or move an injected clock")
			case "t.Skip", "t.Skipf", "t.SkipNow", "b.Skip", "b.Skipf", "b.SkipNow":
				offences = append(offences, f.at(call.Pos())+": a test that skips checks nothing: ./test installs what tests need")
			}
			return true
		})
	}
	return offences
}

// checkLength lists files of Go and shell that are too long to read.
func checkLength(files []source) []string {
	var offences []string
	for _, f := range files {
		code := f.isGo() || f.path == "test" || strings.HasSuffix(f.path, ".sh")
		if n := strings.Count(f.text, "\n"); code && !f.generated() && n > maxLines {
			offences = append(offences, fmt.Sprintf("%s: %d lines, at most %d: split it by what changes together", f.path, n, maxLines))
		}
	}
	return offences
}

func TestTests(t *testing.T) {
	t.Parallel()
	report(t, checkTests(goFiles(repository(t), source.isTest)))
}

func TestLength(t *testing.T) {
	t.Parallel()
	report(t, checkLength(repository(t)))
}

func TestTestsRule(t *testing.T) {
	t.Parallel()
	at := "internal/p/a_test.go"
	prove(t, checkTests, []broken{
		{"sleeps", at, "package p\nfunc TestX(t *testing.T) { time.Sleep(1) }\n", "time.Sleep in a test"},
		{"sleeps in a closure", at, "package p\nfunc TestX(t *testing.T) { go func() { time.Sleep(1) }() }\n", "time.Sleep in a test"},
		{"skips", at, "package p\nfunc TestX(t *testing.T) { t.Skip(\"no\") }\n", "a test that skips"},
		{"only says so", at, "package p\nconst x = \"time.Sleep(1)\" // time.Sleep(1)\n", ""},
	})
}

func TestLengthRule(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("// x\n", maxLines)
	prove(t, checkLength, []broken{
		{"long enough", "internal/p/a.go", long[5:] + "package p\n", ""},
		{"too long", "internal/p/a.go", long + "package p\n", "601 lines, at most 600"},
		{"too long, generated", "internal/p/a_templ.go", long + "package p\n", ""},
		{"too long, not code", "internal/p/a.md", long + "x\n", ""},
		{"too long, shell", "e2e/a.sh", long + "x\n", "601 lines"},
	})
}

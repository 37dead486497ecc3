package house

import (
	"strings"
	"testing"
)

// specFiles is a repository of two lists and a test.
func specFiles(t *testing.T, recovery, external, test string) []source {
	t.Helper()
	var files []source
	for path, text := range map[string]string{
		"docs/spec/recovery.tsv":       strings.ReplaceAll(recovery, " | ", "\t"),
		"docs/spec/external_agent.tsv": strings.ReplaceAll(external, " | ", "\t"),
		"internal/p/a.go":              "package p\n",
		"internal/p/a_test.go":         "package p\n" + test,
	} {
		s, err := parse(path, text)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, s)
	}
	return files
}

func TestSpecsRule(t *testing.T) {
	t.Parallel()
	const held = "// spec: R-001\nfunc TestX(t *testing.T) {}\n"
	for _, c := range []struct {
		name, recovery, test string
		want                 string // part of the only offence; "" for none
	}{
		{"held", "## One\nR-001 | internal/p/a.go | It is.", "// TestX is.\n//\n// spec: R-001\nfunc TestX(t *testing.T) {}\n", ""},
		{"held in a folder", "R-001 | internal/p | It is.", held, ""},
		{"held by an entry of a table", "R-001 | internal/p | It is.", "func TestX(t *testing.T) {\n_ = []int{\n// spec: R-001\n1,\n}\n}\n", ""},
		{"held, with a note", "R-001 | internal/p | It is. | Not quite.", held, ""},
		{"open", "R-001 | open | It is.", "", ""},
		{"later", "R-001 | later | It is.", "", ""},
		{"open and tried", "R-001 | open | It is.", held, ""},
		{"built without a test", "R-001 | internal/p/a.go | It is.", "", "no test holds it"},
		{"tag above a comment of something else", "R-001 | open | It is.", "// spec: R-001\n\nfunc TestX(t *testing.T) {}\n", "belongs directly above a test"},
		{"tag above a helper", "R-001 | open | It is.", "// spec: R-001\nfunc help() {}\n", "belongs directly above a test"},
		{"unknown id", "R-001 | open | It is.", "// spec: R-002\nfunc TestX(t *testing.T) {}\n", "the tag R-002 names no statement"},
		{"no id", "R-001 | open | It is.", "// spec: R-1\nfunc TestX(t *testing.T) {}\n", `"R-1" is no id`},
		{"commas", "R-001 | open | It is.\nR-002 | open | It is.", "// spec: R-001, R-002\nfunc TestX(t *testing.T) {}\n", `"R-001," is no id`},
		{"twice", "R-001 | open | It is.\nR-001 | open | It is too.", "", "R-001 is there already"},
		{"no place", "R-001 | internal/p/b.go | It is.", held, `built in "internal/p/b.go", and there is no such file`},
		{"cells missing", "R-001 | open", "", "want id, place and statement"},
		{"of the other list", "A-001 | open | It is.", "", "is no id, want one as R-001"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := checkSpecs(specFiles(t, c.recovery+"\n", "A-001 | open | It is.\n", c.test))
			switch {
			case c.want == "" && len(got) > 0:
				t.Errorf("got %q, want no offence", got)
			case c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)):
				t.Errorf("got %q, want one offence with %q", got, c.want)
			}
		})
	}
}

func TestSpecCoverageRule(t *testing.T) {
	t.Parallel()
	files := specFiles(t, "## One\nR-001 | internal/p/a.go | It is. | Not quite.\n", "## Two\nA-001 | open | It is.\n",
		"// spec: R-001\nfunc TestX(t *testing.T) {}\n// spec: R-001\nfunc TestA(t *testing.T) {}\n")
	got := specCoverage(files)
	for _, want := range []string{
		"### One", "| R-001 | It is. *(Not quite.)* | `internal/p/a.go` | `p TestA`, `p TestX` |", "| A-001 | It is. | *open* |  |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s\nwant it to hold %s", got, want)
		}
	}
	if got := counted(files); !strings.Contains(got, "1 built and held by tests, 0 open, 0 later") {
		t.Errorf("got %q", got)
	}
}

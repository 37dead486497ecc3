package house

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// specPage is the page that is made of the lists and the tags.
const specPage = "docs/spec-coverage.md"

// statement is one sentence of a specification, in our own words.
type statement struct {
	id    string
	place string // files and folders, separated by commas; or open, or later
	text  string
	note  string
	at    string // file and line
}

func (s statement) built() bool { return s.place != "open" && s.place != "later" }

// places are the files and folders where the statement is built.
func (s statement) places() []string {
	if !s.built() {
		return nil
	}
	return strings.Split(s.place, ", ")
}

// specification is a list of statements: docs/spec/NAME.tsv.
type specification struct {
	title, path, letter string
	lines               []any // a statement, or a string that heads a section
}

func specifications() []specification {
	return []specification{
		{title: "The recovery specification", path: "docs/spec/recovery.tsv", letter: "R"},
		{title: "The external-agent specification", path: "docs/spec/external_agent.tsv", letter: "A"},
	}
}

// readSpecs reads the lists among files and says what is wrong with them.
func readSpecs(files []source) (specs []specification, offences []string) {
	paths := map[string]bool{}
	for _, f := range files {
		for at := f.path; at != "."; at = filepath.ToSlash(filepath.Dir(at)) {
			paths[at] = true
		}
	}
	for _, spec := range specifications() {
		for _, f := range files {
			if f.path != spec.path {
				continue
			}
			last := 0
			for i, line := range strings.Split(strings.TrimRight(f.text, "\n"), "\n") {
				at := fmt.Sprintf("%s:%d", f.path, i+1)
				if heading, ok := strings.CutPrefix(line, "## "); ok {
					spec.lines = append(spec.lines, heading)
				}
				if strings.HasPrefix(line, "#") {
					continue
				}
				s, why := readStatement(line, spec.letter, at, &last)
				offences = append(offences, why...)
				for _, p := range s.places() {
					if !paths[p] {
						offences = append(offences, fmt.Sprintf("%s: %s is built in %q, and there is no such file", at, s.id, p))
					}
				}
				spec.lines = append(spec.lines, s)
			}
		}
		specs = append(specs, spec)
	}
	return specs, offences
}

// readStatement reads a line; ids grow, so that none is there twice.
func readStatement(line, letter, at string, last *int) (statement, []string) {
	cells := append(strings.Split(line, "\t"), "", "", "", "")
	s := statement{id: cells[0], place: cells[1], text: cells[2], note: cells[3], at: at}
	var offences []string
	if n := strings.Count(line, "\t"); n != 2 && n != 3 || s.place == "" || s.text == "" {
		offences = append(offences, at+": want id, place and statement, and perhaps a note, with one tab between them")
	}
	var n int
	if _, err := fmt.Sscanf(s.id, letter+"-%03d", &n); err != nil || s.id != fmt.Sprintf("%s-%03d", letter, n) {
		return s, append(offences, fmt.Sprintf("%s: %q is no id, want one as %s-001", at, s.id, letter))
	}
	if n <= *last {
		offences = append(offences, fmt.Sprintf("%s: %s is there already or stands after a higher one: a new statement takes the next free number, at the end of its section or list", at, s.id))
	}
	*last = max(n, *last)
	return s, offences
}

// specTags finds which tests say that they hold which statement: by a comment
// "// spec: R-001 R-002" above a test, or in it (at an entry of its table).
func specTags(files []source) (held map[string][]string, offences []string) {
	held = map[string][]string{}
	tag := regexp.MustCompile(`^//\s*spec:(.*)$`)
	id := regexp.MustCompile(`^[AR]-\d{3}$`)
	test := regexp.MustCompile(`^(Test|Fuzz)[^a-z]`)
	for _, f := range files {
		if !f.isGo() || !f.isTest() || strings.HasPrefix(f.path, "internal/house/") {
			continue
		}
		for _, group := range f.ast.Comments {
			for _, c := range group.List {
				found := tag.FindStringSubmatch(c.Text)
				if found == nil {
					continue
				}
				name := f.functionAt(c.Pos())
				if !test.MatchString(name) {
					offences = append(offences, f.at(c.Pos())+": a spec tag belongs directly above a test function or into it")
					continue
				}
				for _, word := range strings.Fields(found[1]) {
					if !id.MatchString(word) {
						offences = append(offences, fmt.Sprintf("%s: %q is no id of a statement; ids as R-001, separated by spaces, and nothing else", f.at(c.Pos()), word))
						continue
					}
					if by := fmt.Sprintf("%s %s", f.folder(), name); !slices.Contains(held[word], by) {
						held[word] = append(held[word], by)
					}
				}
			}
		}
	}
	return held, offences
}

// checkSpecs holds the lists and the tags against each other.
func checkSpecs(files []source) []string {
	specs, offences := readSpecs(files)
	held, more := specTags(files)
	offences = append(offences, more...)
	known := map[string]bool{}
	for _, spec := range specs {
		for _, line := range spec.lines {
			s, ok := line.(statement)
			if !ok {
				continue
			}
			known[s.id] = true
			if s.built() && len(held[s.id]) == 0 {
				offences = append(offences, fmt.Sprintf("%s: %s is said to be built, and no test holds it: tag the test that fails without it with // spec: %s", s.at, s.id, s.id))
			}
		}
	}
	for id, tests := range held {
		if !known[id] {
			offences = append(offences, fmt.Sprintf("%s: the tag %s names no statement of docs/spec", tests[0], id))
		}
	}
	slices.Sort(offences)
	return offences
}

// specCoverage writes the page.
func specCoverage(files []source) string {
	specs, _ := readSpecs(files)
	held, _ := specTags(files)
	var b strings.Builder
	b.WriteString("# What the specifications say, and what holds it\n\n" +
		"Made by `make spec-coverage` out of `docs/spec/*.tsv` and the `// spec:` tags of the tests; a test fails when it is stale.\n" +
		"*open*: not built yet, or no test holds it yet. *later*: comes with the part that it belongs to.\n")
	for _, spec := range specs {
		fmt.Fprintf(&b, "\n## %s\n", spec.title)
		for _, line := range spec.lines {
			s, ok := line.(statement)
			if !ok {
				fmt.Fprintf(&b, "\n### %s\n\n| id | statement | built in | held by |\n|---|---|---|---|\n", line)
				continue
			}
			text := s.text
			if s.note != "" {
				text += " *(" + s.note + ")*"
			}
			place := "*" + s.place + "*"
			if s.built() {
				place = "`" + strings.ReplaceAll(s.place, ", ", "` `") + "`"
			}
			tests := slices.Clone(held[s.id])
			slices.Sort(tests)
			for i, t := range tests {
				tests[i] = "`" + strings.TrimPrefix(t, "internal/") + "`"
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", s.id, strings.ReplaceAll(text, "|", `\|`), place, strings.Join(tests, ", "))
		}
	}
	return b.String()
}

// counted says how far the specifications are built and held.
func counted(files []source) string {
	specs, _ := readSpecs(files)
	var all []string
	for _, spec := range specs {
		var built, open, later int
		for _, line := range spec.lines {
			switch s, ok := line.(statement); {
			case !ok:
			case s.place == "open":
				open++
			case s.place == "later":
				later++
			default:
				built++
			}
		}
		all = append(all, fmt.Sprintf("%s: %d built and held by tests, %d open, %d later", spec.title, built, open, later))
	}
	return strings.Join(all, "\n")
}

func TestSpecs(t *testing.T) {
	t.Parallel()
	report(t, checkSpecs(repository(t)))
}

// TestSpecCoverage compares the page with the lists and the tags; UPDATE=1
// writes it.
func TestSpecCoverage(t *testing.T) {
	t.Parallel()
	files := repository(t)
	want := specCoverage(files)
	path := filepath.Join("..", "..", filepath.FromSlash(specPage))
	t.Log("\n" + counted(files))
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is stale: run make spec-coverage, and commit what it writes", specPage)
	}
}

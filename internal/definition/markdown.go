package definition

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Outline is what a description in markdown says of a workflow, and what it
// leaves out.
type Outline struct {
	Ready   bool           `json:"ready"` // nothing is missing
	Name    string         `json:"name,omitempty"`
	Steps   []OutlineStep  `json:"steps"`
	Missing []flow.Problem `json:"missing"` // without these no plan can be made
	Ask     []flow.Problem `json:"ask"`     // these can be guessed, and should be asked
}

// OutlineStep is a step as it is described.
type OutlineStep struct {
	Line  int    `json:"line"`
	Title string `json:"title"`
	Type  string `json:"type,omitempty"` // the step type that the words point to, if any
	text  string
}

// Bounds of a description.
const (
	maxOutlineSteps = 200
	maxOutlineTitle = 120
)

// Prevalidate reads a description of a workflow in markdown and says what is
// missing before a plan can be made of it. It looks at words and marks only:
// the same text always gets the same answer, and what it does not find may
// still be wrong. A title (# Name) names the workflow; its steps are a numbered
// list, or the headings or list below a heading "Steps".
func Prevalidate(markdown string, types []flow.StepType) Outline {
	o := Outline{Steps: []OutlineStep{}, Missing: []flow.Problem{}, Ask: []flow.Problem{}}
	d := readMarkdown(markdown)
	o.Name = slug(d.title)
	switch {
	case strings.TrimSpace(markdown) == "":
		o.miss(0, "description", "there is nothing here", "a title, and the steps as a numbered list")
	case o.Name == "":
		o.miss(1, "name", "the workflow has no name", "a first line such as: # Nightly sync")
	}
	for i, s := range d.steps {
		if i == maxOutlineSteps {
			o.miss(s.Line, "steps", fmt.Sprintf("there are more than %d steps", maxOutlineSteps), "split the workflow")
			break
		}
		s.Type = typeOf(s.text, types)
		o.Steps = append(o.Steps, s)
		o.look(i, s, d)
	}
	if len(d.steps) == 0 && strings.TrimSpace(markdown) != "" {
		o.miss(0, "steps", "no steps are found", "a numbered list (1. Fetch ...), or a heading for each below a heading: ## Steps")
	}
	o.lookAtAll(d)
	o.Ready = len(o.Missing) == 0
	return o
}

func (o *Outline) miss(line int, field, message, fix string) {
	o.Missing = append(o.Missing, flow.Problem{Line: line, Field: field, Message: message, Fix: fix})
}

func (o *Outline) ask(line int, field, message, fix string) {
	o.Ask = append(o.Ask, flow.Problem{Line: line, Field: field, Message: message, Fix: fix})
}

// described is a description taken apart.
type described struct {
	title string
	lines []string
	steps []OutlineStep
	input string // the text below a heading Input
}

// readMarkdown takes a description apart. What stands in a fence belongs to
// the step around it and begins none.
func readMarkdown(text string) described {
	d := described{lines: strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")}
	heading, number, item := regexp.MustCompile(`^(#{1,6})\s+(.+?)\s*#*$`), regexp.MustCompile(`^\d{1,3}[.)]\s+(.+)$`), regexp.MustCompile(`^[-*+]\s+(.+)$`)
	section, level, fenced := "", 0, false
	begin := func(line int, title string) {
		d.steps = append(d.steps, OutlineStep{Line: line, Title: plainTitle(title), text: title})
	}
	for i, line := range d.lines {
		if strings.HasPrefix(strings.TrimSpace(line), "```") || strings.HasPrefix(strings.TrimSpace(line), "~~~") {
			fenced = !fenced
		}
		if h := heading.FindStringSubmatch(line); h != nil && !fenced {
			switch n := len(h[1]); {
			case n == 1 && d.title == "":
				d.title = h[2]
			case section == "steps" && n > level:
				begin(i+1, h[2])
			default:
				section, level = strings.ToLower(strings.TrimRight(h[2], ":")), n
			}
			continue
		}
		if n := number.FindStringSubmatch(line); n != nil && !fenced && (section == "" || section == "steps") {
			begin(i+1, n[1])
			continue
		}
		if n := item.FindStringSubmatch(line); n != nil && !fenced && section == "steps" && (len(d.steps) == 0 || d.listed()) {
			begin(i+1, n[1])
			continue
		}
		switch {
		case section == "input" || section == "inputs":
			d.input += line + "\n"
		case len(d.steps) > 0 && (section == "" || section == "steps"):
			d.steps[len(d.steps)-1].text += "\n" + line
		}
	}
	return d
}

// listed tells whether the steps so far are items of a list with marks, not
// headings or numbers, below which items only add to a step.
func (d *described) listed() bool {
	return regexp.MustCompile(`^[-*+]\s`).MatchString(d.lines[d.steps[0].Line-1])
}

func plainTitle(text string) string {
	text = strings.Trim(strings.NewReplacer("**", "", "`", "", "__", "").Replace(text), " :")
	if r := []rune(text); len(r) > maxOutlineTitle {
		return string(r[:maxOutlineTitle-1]) + "…"
	}
	return text
}

// slug makes a workflow's name of a title.
func slug(title string) string {
	name := regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(title), "-")
	return strings.Trim(name[:min(len(name), 60)], "-")
}

// typeOf is the step type that a step's words point to: one that it names, or
// else what its verbs mean. Only types that are offered are answered.
func typeOf(text string, types []flow.StepType) string {
	offered := func(name string) bool {
		return slices.ContainsFunc(types, func(t flow.StepType) bool { return t.Name == name })
	}
	for _, word := range regexp.MustCompile(`[a-z]+_[a-z_]+`).FindAllString(text, -1) {
		if offered(word) {
			return word
		}
	}
	for _, g := range []struct{ name, words string }{
		{"human_approval", `\b(approv\w*|sign[- ]?off|a person (decides|confirms)|ask (the|a) (manager|owner|person))\b`},
		{"wait", `^\W*(wait|pause|sleep)\b`},
		{"conditional", `^\W*(if|when|unless|otherwise)\b`},
		{"mcp_call", `\b(mcp|tool)\b`},
		{"http_request", `\b(https?://|(GET|POST|PUT|PATCH|DELETE)\b|fetch|request|api\b|endpoint|webhook|call(s|ed)? |upload|download|send (it|them|the|a) )`},
		{"code", `\b(javascript|script|compute|calculate)\b`},
		{"transform", `\b(map|rename|convert|transform|combine|pick|select|build|format|merge)\b`},
	} {
		if offered(g.name) && regexp.MustCompile(`(?i)`+g.words).MatchString(text) {
			return g.name
		}
	}
	return ""
}

package show

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// around is how many lines of a unified diff stand around a change.
const around = 3

// maxEdits bounds how many lines may differ before texts are shown as one
// going and the other coming.
const maxEdits = 1000

// edit is a line that stays (' '), goes ('-') or comes ('+').
type edit struct {
	sign byte
	text string
}

// Unified writes how one text becomes another as a unified diff, nothing if
// they are the same. It reports whether they differ.
func Unified(w io.Writer, ink Ink, nameA, nameB, a, b string) bool {
	if a == b {
		return false
	}
	all := edits(lines(a), lines(b))
	fmt.Fprintf(w, "%s\n%s\n", ink.Bold("--- "+Clean(nameA)), ink.Bold("+++ "+Clean(nameB)))
	for at := 0; at < len(all); {
		from, to := hunk(all, at)
		if from == to {
			break
		}
		lineA, lineB := 1, 1
		for _, e := range all[:from] {
			lineA, lineB = advance(e, lineA, lineB)
		}
		endA, endB := lineA, lineB
		for _, e := range all[from:to] {
			endA, endB = advance(e, endA, endB)
		}
		fmt.Fprintf(w, "%s\n", ink.Faint(fmt.Sprintf("@@ -%s +%s @@", span(lineA, endA), span(lineB, endB))))
		for _, e := range all[from:to] {
			text := string(e.sign) + Clean(e.text)
			switch e.sign {
			case '-':
				text = ink.Bad(text)
			case '+':
				text = ink.Good(text)
			}
			fmt.Fprintln(w, text)
		}
		at = to
	}
	return true
}

func advance(e edit, a, b int) (int, int) {
	if e.sign != '+' {
		a++
	}
	if e.sign != '-' {
		b++
	}
	return a, b
}

// span is a range of lines as diffs write it.
func span(from, to int) string {
	if from == to {
		return fmt.Sprintf("%d,0", from-1)
	}
	return fmt.Sprintf("%d,%d", from, to-from)
}

// hunk finds the next changes that stand close together, and what is around
// them.
func hunk(all []edit, at int) (from, to int) {
	changed := func(e edit) bool { return e.sign != ' ' }
	first := slices.IndexFunc(all[at:], changed)
	if first < 0 {
		return at, at
	}
	first += at
	last := first
	for i := first; i < len(all) && i <= last+2*around+1; i++ {
		if changed(all[i]) {
			last = i
		}
	}
	return max(at, first-around), min(len(all), last+around+1)
}

// lines splits a text; a last line that does not end is marked as diffs do.
func lines(text string) []string {
	if text == "" {
		return nil
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n\\ no newline at the end\n"
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// edits finds a shortest way from one list of lines to another.
func edits(a, b []string) []edit {
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		start++
	}
	end := 0
	for end < len(a)-start && end < len(b)-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	var out []edit
	add := func(sign byte, list []string) {
		for _, text := range list {
			out = append(out, edit{sign, text})
		}
	}
	add(' ', a[:start])
	x, y := a[start:len(a)-end], b[start:len(b)-end]
	if middle, ok := myers(x, y); ok {
		out = append(out, middle...)
	} else {
		add('-', x)
		add('+', y)
	}
	add(' ', a[len(a)-end:])
	return out
}

// myers is the greedy algorithm of Myers (1986): at the d-th step, v[k] is how
// far one comes with d edits on the diagonal k.
func myers(a, b []string) ([]edit, bool) {
	bound := min(len(a)+len(b), maxEdits)
	v := make([]int, 2*bound+3)
	mid := bound + 1
	var trace [][]int
	for d := 0; d <= bound; d++ {
		trace = append(trace, slices.Clone(v[mid-d-1:mid+d+2]))
		for k := -d; k <= d; k += 2 {
			x := v[mid+k-1] + 1
			if k == -d || k != d && v[mid+k-1] < v[mid+k+1] {
				x = v[mid+k+1]
			}
			for x < len(a) && x-k < len(b) && a[x] == b[x-k] {
				x++
			}
			if v[mid+k] = x; x >= len(a) && x-k >= len(b) {
				return walked(a, b, trace), true
			}
		}
	}
	return nil, false
}

// walked goes the way back that myers has found.
func walked(a, b []string, trace [][]int) []edit {
	var out []edit
	x, y := len(a), len(b)
	for d := len(trace) - 1; d >= 0; d-- {
		v, mid := trace[d], d+1
		k := x - y
		from := k - 1
		if k == -d || k != d && v[mid+k-1] < v[mid+k+1] {
			from = k + 1
		}
		fromX := v[mid+from]
		fromY := fromX - from
		for x > max(fromX, 0) && y > max(fromY, 0) {
			x, y = x-1, y-1
			out = append(out, edit{' ', a[x]})
		}
		if d == 0 {
			break
		}
		if x == fromX {
			y--
			out = append(out, edit{'+', b[y]})
		} else {
			x--
			out = append(out, edit{'-', a[x]})
		}
	}
	slices.Reverse(out)
	return out
}

package show

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Table writes rows under a header, each column as wide as it needs.
func Table(w io.Writer, ink Ink, header []string, rows [][]string) {
	width := make([]int, len(header))
	for i, h := range header {
		width[i] = utf8.RuneCountInString(h)
	}
	for _, r := range rows {
		for i := range r {
			r[i] = Clean(r[i])
			width[i] = max(width[i], utf8.RuneCountInString(r[i]))
		}
	}
	line := func(cells []string, paint func(string) string) {
		var b strings.Builder
		for i, c := range cells {
			b.WriteString(c)
			if i < len(cells)-1 {
				b.WriteString(strings.Repeat(" ", width[i]-utf8.RuneCountInString(c)+2))
			}
		}
		fmt.Fprintln(w, paint(b.String()))
	}
	line(header, ink.Faint)
	for _, r := range rows {
		line(r, func(s string) string { return s })
	}
}

package definition

import (
	"strings"
)

// suggest says what would be right instead of an unknown name: the known one
// most like it, and else all of them.
func suggest(name string, known []string) string {
	if len(known) == 0 {
		return ""
	}
	best, least := "", 3
	for _, k := range known {
		if d := distance(plain(name), plain(k)); d < least && d < max(len(k), 2) {
			best, least = k, d
		}
	}
	if best != "" {
		return "did you mean " + best + "?"
	}
	const most = 20
	if len(known) > most {
		return "one of " + strings.Join(known[:most], ", ") + ", ..."
	}
	return "one of " + strings.Join(known, ", ")
}

func plain(s string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(clip(s)))
}

// distance is how many characters must be put in, taken out, exchanged or
// swapped with their neighbour.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			change := 1
			if x[i-1] == y[j-1] {
				change = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(x)][len(y)]
}

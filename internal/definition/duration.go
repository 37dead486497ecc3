package definition

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// parseDuration reads a duration as people write it: Go's units, and d for
// days of 24 hours, as in "90s", "1h30m", "2d", "1d12h". It is longer than 0
// and at most most.
func parseDuration(s string, most time.Duration) (time.Duration, error) {
	wrong := fmt.Errorf("%q is not a duration", clip(s))
	rest := strings.TrimSpace(s)
	var total time.Duration
	if days, after, found := strings.Cut(rest, "d"); found {
		n, err := strconv.ParseUint(days, 10, 31)
		if err != nil || n > 10_000 {
			return 0, wrong
		}
		total, rest = time.Duration(n)*24*time.Hour, after
	}
	if rest != "" {
		d, err := time.ParseDuration(rest)
		if err != nil || d < 0 || rest[0] == '+' || rest[0] == '-' {
			return 0, wrong
		}
		total += d
	}
	if total <= 0 || total > most {
		return 0, fmt.Errorf("%q must be more than 0 and at most %s", clip(s), spell(most))
	}
	return total, nil
}

// spell writes a duration the short way: 10m, not 10m0s.
func spell(d time.Duration) string {
	if d%(24*time.Hour) == 0 {
		return strconv.Itoa(int(d/(24*time.Hour))) + "d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

package responder

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

const (
	firstPause = 2 * time.Second
	maxPause   = 10 * time.Minute // that a Retry-After may ask for
)

// rateLimit waits as long as the server asks, else a little.
func rateLimit(q flow.Question, now time.Time) (remedy, bool) {
	code := status(q)
	if code != http.StatusTooManyRequests && code != http.StatusServiceUnavailable {
		return remedy{}, false
	}
	what := "The server limits how often it may be asked"
	if code == http.StatusServiceUnavailable {
		what = "The server is not available for the moment"
	}
	pause, asked := retryAfter(header(q, "Retry-After"), now)
	switch {
	case asked && pause > maxPause:
		return toHuman(fmt.Sprintf("%s and asks to wait %s.", what, pause.Round(time.Second)),
			"Retry the step when that time has passed, or skip it.")
	case !asked:
		pause = pauseFor(q.Attempt)
	}
	m := retry(fmt.Sprintf("%s (HTTP %d); trying again after %s.", what, code, pause.Round(time.Millisecond)), nil)
	m.after = pause
	return m, true
}

// pauseFor grows with the recovery attempts already spent.
func pauseFor(attempt int) time.Duration { return firstPause << min(max(attempt, 0), 5) }

// retryAfter reads the header, in seconds or as a date.
func retryAfter(text string, now time.Time) (time.Duration, bool) {
	text = strings.TrimSpace(text)
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(n) * time.Second, true
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0), true
	}
	return 0, false
}

// timedOut gives each attempt twice the time, up to the cap.
func timedOut(q flow.Question, _ time.Time) (remedy, bool) {
	if q.Failed.Kind != flow.KindTimeout || q.Timeout <= 0 {
		return remedy{}, false
	}
	longer := min(2*q.Timeout, q.Cap)
	if longer <= q.Timeout {
		return toHuman(fmt.Sprintf("The step got no answer within %s, which is as long as it may take.", q.Timeout),
			"See whether the other side is at work at all, or raise limits.step_timeout_ms.")
	}
	return retry(fmt.Sprintf("No answer within %s; giving it %s.", q.Timeout, longer),
		map[string]any{"timeout": longer.Milliseconds()}), true
}

// passing tries once more what may have been a passing failure, unless that
// could do something twice.
func passing(q flow.Question, _ time.Time) (remedy, bool) {
	if q.Failed.Kind != flow.KindTransient || q.Input.Step.Type != "http_request" {
		return remedy{}, false
	}
	switch strings.ToUpper(request(q).Method) {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPut, http.MethodDelete:
	default:
		return remedy{}, false
	}
	m := retry("The failure may have been a passing one: "+short(q.Failed.Error, 120), nil)
	m.after = pauseFor(q.Attempt)
	return m, true
}

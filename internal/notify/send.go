package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/longstop-dev/longstop/internal/egress"
	"github.com/longstop-dev/longstop/internal/flow"
)

// tried is what a try came to.
type tried struct {
	status int    // of the answer; 0 if none came
	wrong  string // "" if the receiver has it
	after  time.Duration
	never  bool // another try is of no use
}

// send makes one try. The receiver's words are not read: only its status
// counts.
func (c *Courier) send(ctx context.Context, to flow.NoticeTarget, n flow.Notice) tried {
	ctx, cancel := context.WithTimeout(ctx, c.c.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL, bytes.NewReader(n.Body))
	if err != nil {
		return tried{wrong: "notify.url is no URL", never: true}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Longstop-Webhooks/1")
	sign(req.Header, to.Secret, n.ID, c.c.Clock.Now(), n.Body)
	resp, err := c.c.HTTP.Do(req)
	if err != nil {
		return tried{wrong: c.wording(ctx, err)}
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10) // so that the connection can be used again
	out := tried{status: resp.StatusCode}
	switch {
	case resp.StatusCode/100 == 2:
		return out
	case resp.StatusCode == http.StatusGone:
		out.wrong, out.never = "HTTP 410: the receiver wants no more of it", true
	case resp.StatusCode/100 == 3:
		out.wrong = fmt.Sprintf("HTTP %d: redirects are not followed; set notify.url to where it leads", resp.StatusCode)
	default:
		out.wrong = fmt.Sprintf("HTTP %d: %s", resp.StatusCode, http.StatusText(resp.StatusCode))
		if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
			out.after = min(time.Duration(s)*time.Second, maxPause)
		}
	}
	return out
}

// wording says what went wrong without the URL, which may hold a key.
func (c *Courier) wording(ctx context.Context, err error) string {
	var refused *egress.Error
	switch {
	case errors.As(err, &refused):
		return "not sent: " + refused.Reason
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Sprintf("no answer within %s", c.c.Timeout)
	}
	return "the receiver cannot be reached, or broke off"
}

// maxPause is the longest pause between two tries.
const maxPause = 6 * time.Hour

// pauses are the pauses after each failed try. When they are used up, a notice
// is given up: about a day after it was written.
func pauses() []time.Duration {
	return []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 3 * time.Hour, maxPause, maxPause, maxPause}
}

// settle notes on a notice what a try came to.
func settle(n flow.Notice, t tried, now time.Time, jitter float64) flow.Notice {
	n.Tries++
	n.Status, n.Error = t.status, t.wrong
	steps := pauses()
	switch {
	case t.wrong == "":
		n.State, n.SettledAt, n.DueAt = flow.NoticeSent, now, time.Time{}
	case t.never || n.Tries > len(steps):
		n.State, n.SettledAt, n.DueAt = flow.NoticeGivenUp, now, time.Time{}
	default:
		pause := time.Duration(float64(steps[n.Tries-1]) * (1 + jitter/5)) // not all at the same time
		n.DueAt = now.Add(max(pause, t.after))
	}
	return n
}

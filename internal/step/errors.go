package step

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/longstop-dev/longstop/internal/egress"
	"github.com/longstop-dev/longstop/internal/expr"
	"github.com/longstop-dev/longstop/internal/flow"
)

func failf(kind flow.ErrorKind, format string, args ...any) *flow.StepError {
	return &flow.StepError{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// because returns e with its cause, which is logged and never shown.
func because(e *flow.StepError, cause error) *flow.StepError {
	e.Err = cause
	return e
}

// asStepError makes a step error of any error, so that nothing else leaves
// this package.
func asStepError(err error) *flow.StepError {
	var e *flow.StepError
	if errors.As(err, &e) {
		return e
	}
	return because(failf(flow.KindInternal, "the step broke"), err)
}

// tooLarge is the failure of something over a size limit.
func tooLarge(what string, limit int64) *flow.StepError {
	return failf(flow.KindTooLarge, "%s is larger than %s, the limit of limits.output_bytes", what, size(limit))
}

// stopped is the failure of an attempt whose context has ended: by its
// time-out, whose length is budget (0 if unknown), or by a cancel.
func stopped(ctx context.Context, budget time.Duration, doing string) *flow.StepError {
	if doing != "" {
		doing = ": " + doing
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		if budget <= 0 {
			return because(failf(flow.KindTimeout, "the attempt ran out of time%s", doing), ctx.Err())
		}
		return because(failf(flow.KindTimeout, "the attempt ran out of its %s%s", rounded(budget), doing), ctx.Err())
	}
	return because(failf(flow.KindTransient, "the attempt was cancelled%s", doing), context.Canceled)
}

// budget is what the context leaves, as far as it has a deadline.
func budget(ctx context.Context) time.Duration {
	if at, ok := ctx.Deadline(); ok {
		return time.Until(at)
	}
	return 0
}

// rounded gives back the round number that a time-out was before a little of
// it passed.
func rounded(d time.Duration) time.Duration {
	unit := 100 * time.Millisecond
	if d < time.Second {
		unit = 10 * time.Millisecond
	}
	return (d + unit - 1).Truncate(unit)
}

// size writes a number of bytes for people.
func size(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// firstRunes gives the first n characters of s.
func firstRunes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// firstBytes gives at most n bytes of s, cut on a character.
func firstBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// excerpt gives the beginning of an outsider's text on one line.
func excerpt(s string, n int) string {
	s = strings.Join(strings.Fields(firstBytes(s, 8*n)), " ")
	if cut := firstRunes(s, n); len(cut) < len(s) {
		return cut + "…"
	}
	return s
}

// exprRefused is the failure of a template or condition that does not
// compile; path is where it stands in config.
func exprRefused(path string, err error) *flow.StepError {
	return because(failf(flow.KindConfig, "%s", located(path, err)), err)
}

// exprFailure is the failure of a template or condition that compiles and
// cannot be evaluated.
func exprFailure(ctx context.Context, limit time.Duration, path string, err error) *flow.StepError {
	if ctx.Err() != nil {
		return stopped(ctx, limit, path)
	}
	return because(failf(flow.KindTemplate, "%s", located(path, err)), err)
}

// located writes an error below a path of config: /a/0 below config.value is
// config.value.a[0].
func located(path string, err error) string {
	var e *expr.Error
	if !errors.As(err, &e) {
		return path + ": " + err.Error()
	}
	for i, key := range strings.Split(e.Pointer, "/") {
		switch {
		case i == 0: // before the first slash
		case key != "" && strings.Trim(key, "0123456789") == "":
			path += "[" + key + "]"
		default:
			path += "." + strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
		}
	}
	bare := *e
	bare.Pointer = ""
	return path + ": " + bare.Error()
}

// guardRefused reports whether the egress guard refused a call.
func guardRefused(err error) bool { return errors.Is(err, egress.ErrRefused) }

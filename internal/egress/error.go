package egress

import (
	"errors"
	"fmt"
	"net/url"
)

// ErrRefused is what every refusal of the guard's is.
var ErrRefused = errors.New("refused by the egress guard")

// ErrTooLarge is a body over its cap.
var ErrTooLarge = errors.New("the body is too large")

// Error is a refusal: where the call would have gone, why it may not, and what
// would be right. URL has neither user information nor a query.
type Error struct {
	URL    string
	Reason string
	Fix    string
}

// Error names the place, the reason and the remedy.
func (e *Error) Error() string {
	text := e.Reason
	if e.URL != "" {
		text = e.URL + ": " + text
	}
	if e.Fix != "" {
		text += " (" + e.Fix + ")"
	}
	return text
}

// Is makes every Error an [ErrRefused].
func (e *Error) Is(target error) bool { return target == ErrRefused }

func refuse(u *url.URL, fix, reason string, args ...any) *Error {
	return &Error{URL: shown(u), Reason: fmt.Sprintf(reason, args...), Fix: fix}
}

// placed gives a refusal at the dial the URL that led there. Other errors stay
// as they are.
func placed(err error, u *url.URL) error {
	var e *Error
	if !errors.As(err, &e) || e.URL != "" {
		return err
	}
	return &Error{URL: shown(u), Reason: e.Reason, Fix: e.Fix}
}

// shown is a URL as an error may show it.
func shown(u *url.URL) string {
	if u == nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

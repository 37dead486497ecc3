package flow

import (
	"errors"
	"fmt"
	"strings"
)

// Code says what kind of refusal or failure an [Error] is. Each face maps a
// code to its own protocol in one table.
type Code string

// The codes.
const (
	CodeInvalid         Code = "invalid"         // the caller sent something wrong
	CodeUnauthenticated Code = "unauthenticated" // no key, or one we do not know
	CodeForbidden       Code = "forbidden"       // the caller's role does not allow it
	CodeNotFound        Code = "not_found"       // no such thing in this workspace
	CodeConflict        Code = "conflict"        // it exists, is closed or was answered already
	CodeStale           Code = "stale"           // someone else moved the run first
	CodeTooLarge        Code = "too_large"       // over a size limit
	CodeRateLimited     Code = "rate_limited"    // asked too often
	CodeUnavailable     Code = "unavailable"     // an outsider or the database did not answer
	CodeInternal        Code = "internal"        // ours
)

// Error is the one error type that crosses package borders. Message, Field
// and Fix are written for the person who has to act on them and never hold a
// secret; Err is the cause, for the log only.
type Error struct {
	Code     Code
	Message  string    // what is wrong
	Field    string    // where: a JSON path, a flag, a file:line
	Fix      string    // what would be right
	Problems []Problem // more than one thing wrong, each with its place
	Err      error     // the cause: logged, never sent
}

// Problem is one thing wrong with what a caller sent.
type Problem struct {
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
	Line    int    `json:"line,omitempty"`
}

// Error gives message, place and remedy in one line, and each problem on a
// line of its own.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(e.Message)
	if e.Fix != "" {
		b.WriteString(" (" + e.Fix + ")")
	}
	for _, p := range e.Problems {
		b.WriteString("\n  ")
		if p.Line > 0 {
			fmt.Fprintf(&b, "line %d: ", p.Line)
		}
		if p.Field != "" {
			b.WriteString(p.Field + ": ")
		}
		b.WriteString(p.Message)
		if p.Fix != "" {
			b.WriteString(" (" + p.Fix + ")")
		}
	}
	return b.String()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error with a code and a formatted message.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// At returns e with the place that is wrong.
func (e *Error) At(field string) *Error { c := *e; c.Field = field; return &c }

// Right returns e with what would be right.
func (e *Error) Right(fix string) *Error { c := *e; c.Fix = fix; return &c }

// Because returns e with its cause.
func (e *Error) Because(err error) *Error { c := *e; c.Err = err; return &c }

// CodeOf gives the code of err: that of the first Error in its chain, and
// internal for any other error; "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}

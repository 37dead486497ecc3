package api

import (
	"context"
	"slices"
	"strings"

	"github.com/longstop-dev/longstop/internal/access"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/secret"
)

// masker gives what takes the workspace's secrets out of all that an operation
// answers: what is stored was masked when it was written, but not with secrets
// that have come since. Nil leaves the audit record as it is, which is verified
// by what is read.
func (a *API) masker(ctx context.Context, op string, by flow.Caller) (*secret.Masker, error) {
	if a.c.Access == nil || strings.HasPrefix(op, "audit.") {
		return nil, nil
	}
	m, err := a.c.Access.Masker(ctx, by.Workspace)
	if err != nil && slices.ContainsFunc(access.Ops(), func(o flow.Op) bool { return o.Name == op }) {
		return nil, nil // secrets that cannot be opened are set again through these
	}
	return m, err
}

// problem is what is sent for an error of an operation, masked, and logged.
func (a *API) problem(ctx context.Context, op string, by flow.Caller, err error) *Problem {
	p := problemOf(err)
	m, broken := a.masker(ctx, op, by)
	if broken != nil {
		p = problemOf(broken)
	}
	p = secret.Masked(m, p)
	a.explain(ctx, op, err, p, m)
	return p
}

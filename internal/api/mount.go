package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/longstop-dev/longstop/internal/access"
	"github.com/longstop-dev/longstop/internal/flow"
)

// body is a response as huma wants it.
type body[T any] struct {
	Location string `header:"Location"`
	Body     T
}

// callerKey marks the caller in a request's context between the guard and the
// handler of one call.
type callerKey struct{}

// place is where an operation is mounted.
type place struct {
	method, path string
	status       int              // of success; 200 if 0
	max          int64            // of the request's body
	location     func(any) string // the path of what was made, for a 201
}

// mount puts an operation of a service behind a path: the caller is
// authenticated and its role checked before anything is decoded, the service
// is called, and its answer or error is encoded.
func mount[I, O any](f *face, op flow.Op, at place, call func(context.Context, flow.Caller, *I) (*O, error)) {
	f.ops = append(f.ops, op)
	if at.max == 0 {
		at.max = maxBody
	}
	operation := huma.Operation{
		OperationID: op.Name, Method: at.method, Path: at.path, Summary: op.Summary, DefaultStatus: at.status, MaxBodyBytes: at.max,
		Tags: []string{tag(op.Name)}, Security: []map[string][]string{{"key": {}}},
		Middlewares: huma.Middlewares{f.guard(op)},
		Errors:      []int{400, 401, 403, 404, 409, 413, 422, 429, 500, 503},
	}
	huma.Register(f.huma, operation, func(ctx context.Context, in *I) (*body[*O], error) {
		by, _ := ctx.Value(callerKey{}).(flow.Caller)
		out, err := call(ctx, by, in)
		if err != nil {
			return nil, f.problem(op, err)
		}
		b := &body[*O]{Body: out}
		if at.location != nil {
			b.Location = at.location(out)
		}
		return b, nil
	})
}

func tag(name string) string {
	for i := range name {
		if name[i] == '.' {
			return name[:i]
		}
	}
	return name
}

// guard lets only those through who may call the operation.
func (f *face) guard(op flow.Op) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		by, err := f.caller(ctx.Context(), ctx.Header("Authorization"), ctx.RemoteAddr())
		if err == nil {
			err = access.Guard{}.Check(by, op)
		}
		if err != nil {
			p := f.problem(op, err)
			for name, v := range p.header() {
				ctx.SetHeader(name, v)
			}
			ctx.SetStatus(p.Status)
			_, _ = ctx.BodyWriter().Write(p.json())
			return
		}
		next(huma.WithValue(ctx, callerKey{}, by))
	}
}

// problem is an error as it is sent. What is ours or the database's is logged
// with its cause, which is never sent.
func (f *face) problem(op flow.Op, err error) *problem {
	p := problemOf(err)
	if p.Status >= 500 {
		f.Log.Error("operation failed", "operation", op.Name, "error", err, "cause", cause(err))
	}
	return p
}

// op describes an operation that the CLI offers too.
func op(name, summary string, min flow.Role, changes bool) flow.Op {
	return flow.Op{Name: name, Summary: summary, Min: min, Changes: changes, Faces: []string{"rest", "cli"}}
}

// get and the others are the usual places.
func get(path string) place  { return place{method: http.MethodGet, path: path} }
func post(path string) place { return place{method: http.MethodPost, path: path} }
func put(path string) place  { return place{method: http.MethodPut, path: path} }
func del(path string) place  { return place{method: http.MethodDelete, path: path} }

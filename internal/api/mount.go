package api

import (
	"cmp"
	"context"
	"net/http"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/secret"
)

// route is what an operation has of its own beside its Op.
type route struct {
	method string
	path   string
	status int                  // of success; 200 if 0, and 204 where there is nothing to say
	at     func(out any) string // the Location of what was made
	text   bool                 // the body is a definition: YAML or JSON text

	live bool // it is offered live too, by instead

	// patient marks one that may wait: it ends with the process, and the key
	// must still hold when the answer is sent.
	patient bool

	// instead may answer the request itself, after the guard; it reports
	// whether it has.
	instead func(http.ResponseWriter, *http.Request, *call) bool
}

// call is what is known of a request on its way through.
type call struct {
	by     flow.Caller
	bearer string
}

type callKey struct{}

// callOf gives the call that observe has put into the request's context.
func callOf(ctx context.Context) *call {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c
	}
	return &call{}
}

// reply is an answer as huma encodes it. It is one type for all operations:
// huma compiles its reader and writer again for each pair of types.
type reply struct {
	Status   int
	Location string `header:"Location"`
	ETag     string `header:"ETag"`
	Body     any
}

// serve mounts one operation of a service. Who calls, may they, decode, call,
// encode: all is done here, and nowhere else.
func serve[S, I, O any](a *API, service S, op flow.Op, at route, fn func(S, context.Context, flow.Caller, *I) (*O, error)) {
	a.mounted = append(a.mounted, Operation{Op: op, Method: at.method, Path: at.path})
	run := func(ctx context.Context, by flow.Caller, in any) (any, error) {
		if any(service) == nil {
			return nil, refuse(http.StatusServiceUnavailable, op.Name+" is not offered by this server", "", "")
		}
		out, err := fn(service, ctx, by, in.(*I))
		if err != nil { // a nil of O is no nil of any
			return nil, err
		}
		return out, nil
	}
	h := a.operation(op, at, hasBody(reflect.TypeFor[I]()))
	empty := a.answers(&h, reflect.TypeFor[O]())
	huma.Register(a.huma, h, func(ctx context.Context, in *I) (*reply, error) { return a.run(ctx, op, at, empty, run, in) })
	if empty { // huma writes a body down for every answer that may have one
		answer := h.Responses[strconv.Itoa(http.StatusNoContent)]
		answer.Content, answer.Headers = nil, nil
	}
	a.describe(at)
}

// answers writes down what an operation answers with, and reports whether that
// is nothing.
func (a *API) answers(h *huma.Operation, out reflect.Type) (empty bool) {
	empty = out.Kind() == reflect.Struct && out.NumField() == 0
	answer := &huma.Response{}
	if empty {
		h.DefaultStatus = http.StatusNoContent
	} else {
		answer.Content = map[string]*huma.MediaType{"application/json": {Schema: a.huma.OpenAPI().Components.Schemas.Schema(reflect.PointerTo(out), true, h.OperationID+"Response")}}
	}
	h.Responses = map[string]*huma.Response{strconv.Itoa(cmp.Or(h.DefaultStatus, http.StatusOK)): answer}
	return empty
}

// run calls an operation and makes its answer.
func (a *API) run(ctx context.Context, op flow.Op, at route, empty bool, call func(context.Context, flow.Caller, any) (any, error), in any) (*reply, error) {
	if at.patient {
		var cancel context.CancelFunc
		ctx, cancel = a.whileOpen(ctx)
		defer cancel()
	}
	by := callOf(ctx).by
	if _, err := a.masker(ctx, op.Name, by); err != nil { // nothing is done of which nothing could be shown
		return nil, a.problem(ctx, op.Name, by, err)
	}
	out, err := call(ctx, by, in)
	if err == nil && at.patient {
		err = a.stillMay(context.WithoutCancel(ctx), op)
	}
	if err != nil {
		return nil, a.problem(ctx, op.Name, by, err)
	}
	if empty {
		return &reply{Status: http.StatusNoContent}, nil
	}
	m, err := a.masker(context.WithoutCancel(ctx), op.Name, by) // again: it may have waited
	if err != nil {
		return nil, a.problem(ctx, op.Name, by, err)
	}
	r := &reply{Status: cmp.Or(at.status, http.StatusOK), Body: secret.Masked(m, out)}
	if v, ok := out.(validated); ok {
		var unchanged bool
		if r.ETag, unchanged = v.Validator(); unchanged {
			r.Status, r.Body = http.StatusNotModified, nil
		}
	}
	if at.at != nil {
		r.Location = at.at(out)
	}
	return r, nil
}

func hasBody(in reflect.Type) bool {
	_, body := in.FieldByName("Body")
	_, raw := in.FieldByName("RawBody")
	return body || raw
}

// operation is what huma is told of an operation.
func (a *API) operation(op flow.Op, at route, body bool) huma.Operation {
	limit := a.c.Limits.BodyBytes
	if at.text {
		limit = a.c.Limits.DefinitionBytes
	}
	return huma.Operation{
		OperationID: op.Name, Summary: op.Summary, Method: at.method, Path: at.path, DefaultStatus: at.status,
		Tags:       []string{tagOf(op.Name)},
		Security:   []map[string][]string{{securityScheme: {}}},
		Errors:     possible(op, at, body),
		Extensions: map[string]any{"x-longstop-role": roleText(op), "x-longstop-changes": op.Changes},
		// The body has been read and bounded before huma sees it.
		MaxBodyBytes: limit + 1, BodyReadTimeout: -1,
		Middlewares: huma.Middlewares{func(ctx huma.Context, next func(huma.Context)) {
			r, w := humachi.Unwrap(ctx)
			c := callOf(r.Context())
			if err := a.admit(r, c, op); err != nil {
				problemOf(err).write(w)
				return
			}
			if at.instead != nil && at.instead(w, r, c) {
				return
			}
			if body {
				if p := readBody(w, r, limit, a.c.Limits.BodyTime, at.text); p != nil {
					p.write(w)
					return
				}
			}
			r.Header.Del("Accept") // JSON is what there is
			next(ctx)
		}},
	}
}

// stillMay checks again that the caller may, after an operation that waited.
func (a *API) stillMay(ctx context.Context, op flow.Op) error {
	by, err := a.c.Access.Authenticate(ctx, callOf(ctx).bearer)
	if err != nil {
		return err
	}
	return a.c.Guard.Check(by, op)
}

// admit says who calls and whether they may.
func (a *API) admit(r *http.Request, c *call, op flow.Op) error {
	if err := a.authenticate(r, c); err != nil {
		return err
	}
	return a.c.Guard.Check(c.by, op)
}

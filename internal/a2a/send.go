package a2a

import (
	"context"
	"errors"
)

// Send sends one message in the form that the target understands and returns
// the first answer, which may be a task that is still working, with the route
// it came over. Another form is tried only if the message certainly was not
// run, all within the deadline of ctx. The errors are those of this package.
func (c *Client) Send(ctx context.Context, t Target, o Out) (*Answer, Route, error) {
	p := plan{queue: routes(t), purpose: t.Purpose}
	if known, found := c.routes.recall(t); found {
		p.queue = append([]Route{known}, p.queue...)
	}
	var telling error
	for {
		r, more := p.next()
		if !more {
			break
		}
		a, err := c.sendOver(ctx, t, r, o)
		if err == nil {
			c.routes.remember(t, r)
			return a, r, nil
		}
		telling = moreTelling(telling, err)
		if !p.refused(r, err) {
			return nil, r, err
		}
		c.routes.forget(t)
	}
	if telling == nil {
		telling = fault(ErrNoRoute, "neither its card nor its URL gives one")
	}
	return nil, Route{}, telling
}

func (c *Client) sendOver(ctx context.Context, t Target, r Route, o Out) (*Answer, error) {
	params, err := writeMessage(o, r.Dialect, r.Tenant)
	if err != nil {
		return nil, err
	}
	result, err := c.call(ctx, t, r, opSend, o.ID, params)
	if err != nil {
		return nil, err
	}
	return ReadAnswer(result)
}

// moreTelling prefers what an agent said over a mere 404 at a place that was
// a guess, and else what came first.
func moreTelling(first, later error) error {
	var spoken *RPCError
	if first == nil || !errors.As(first, &spoken) && errors.As(later, &spoken) {
		return later
	}
	return first
}

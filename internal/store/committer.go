package store

import (
	"context"
	"errors"

	"github.com/longstop-dev/longstop/internal/flow"
)

// maxBatch bounds how many writes share a transaction: enough to make the
// sync cheap, few enough that nobody waits long for the others.
const maxBatch = 512

// op is a write that waits for the committer.
type op struct {
	apply func(context.Context, tx) error
	notes []*note // the audit rows that go with it
	done  chan error
}

// write has apply run inside a transaction that is shared with whatever else
// waits, and returns once it is committed. A *flow.Error that apply returns
// refuses this write alone, for which apply must not have written before it;
// any other error undoes the batch, whose members are then tried one by one.
//
// Once the committer has taken the write, ctx no longer matters: the answer
// tells what became of it.
func (s *Store) write(ctx context.Context, apply func(context.Context, tx) error, audit ...flow.Audit) error {
	rows, err := notes(audit)
	if err != nil {
		return err
	}
	return s.noted(ctx, apply, rows)
}

// noted is write with audit rows that apply may void.
func (s *Store) noted(ctx context.Context, apply func(context.Context, tx) error, rows []*note) error {
	o := &op{apply: apply, notes: rows, done: make(chan error, 1)}
	select {
	case <-s.stop:
		return closed()
	default:
	}
	select {
	case s.ops <- o:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.stop:
		return closed()
	}
	select {
	case err := <-o.done:
		return err
	case <-s.done:
		// The loop has ended: either it has answered, or it never saw this.
		select {
		case err := <-o.done:
			return err
		default:
			return closed()
		}
	}
}

func closed() error {
	return flow.Errorf(flow.CodeUnavailable, "the server is stopping").Right("try again")
}

func (s *Store) commitLoop() {
	defer close(s.done)
	for {
		select {
		case o := <-s.ops:
			s.commit(s.gather(o))
		case <-s.stop:
			for {
				select {
				case o := <-s.ops:
					s.commit(s.gather(o))
				default:
					return
				}
			}
		}
	}
}

// gather takes what waits behind the first write.
func (s *Store) gather(first *op) []*op {
	batch := []*op{first}
	for len(batch) < maxBatch {
		select {
		case o := <-s.ops:
			batch = append(batch, o)
		default:
			return batch
		}
	}
	return batch
}

// commit writes a batch and answers each of its members.
func (s *Store) commit(batch []*op) {
	refused, err := s.try(batch)
	var late refusals
	if errors.As(err, &late) {
		var left []*op
		for i, o := range batch {
			if late[i] == nil {
				left = append(left, o)
			}
		}
		if len(left) > 0 {
			s.commit(left)
		}
		// Only now: who is refused because of another member finds what that one
		// has written.
		for i, refusal := range late {
			batch[i].done <- refusal
		}
		return
	}
	if err != nil && len(batch) > 1 {
		for _, o := range batch { // find the one at fault; the others go through
			s.commit([]*op{o})
		}
		return
	}
	for i, o := range batch {
		switch {
		case err != nil:
			o.done <- unavailable(err)
		default:
			o.done <- refused[i]
		}
	}
}

// try runs a batch in one transaction. It gives each member's refusal, or the
// error that undid them all.
func (s *Store) try(batch []*op) (refused []error, err error) {
	ctx := context.Background()
	t, err := s.db.begin(ctx)
	if err != nil {
		return nil, err
	}
	if s.show != nil {
		t = &traced{writeTx: t, show: s.show}
	}
	refused = make([]error, len(batch))
	for i, o := range batch {
		t.member(i)
		err := o.apply(ctx, t)
		var refusal *flow.Error
		if errors.As(err, &refusal) {
			refused[i] = refusal
			continue
		}
		if err != nil {
			t.rollback()
			return nil, err
		}
	}
	heads, err := s.link(ctx, t, batch, refused)
	if err != nil {
		t.rollback()
		return nil, err
	}
	if err := t.commit(ctx); err != nil {
		t.rollback()
		clear(s.heads) // what the database has now is for it to say
		return nil, err
	}
	s.keep(heads)
	return refused, nil
}

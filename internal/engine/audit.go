package engine

import "github.com/longstop-dev/longstop/internal/flow"

// did adds to the transition who has caused it: the audit row that is written
// with it.
func (c *change) did(by flow.Caller, op string, details map[string]any) {
	c.c.Audit = append(c.c.Audit, by.Did(op, "run/"+c.c.Run.ID, c.now, details))
}

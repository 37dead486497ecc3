package cli

import (
	"fmt"

	"github.com/longstop-dev/longstop/internal/flow"
)

type casesUsageCmd struct {
	paging
	connection
}

// Help is shown under --help.
func (casesUsageCmd) Help() string {
	return `Example:
  longstop cases usage        # the budget of a day is the setting model.daily_tokens`
}

// Run lists what the built-in model has used.
func (c *casesUsageCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		l, err := s.ModelUsage(a.ctx, c.page())
		if err != nil {
			return err
		}
		var rows [][]string
		for _, d := range l.Items {
			rows = append(rows, []string{d.Day, fmt.Sprint(d.Calls), tokens(d.Usage)})
		}
		defer a.more(c.JSON, l.Next)
		return a.table(c.JSON, l, []string{"day (UTC)", "calls", "used"}, rows)
	})
}

// tokens says what a model has used.
func tokens(u flow.Usage) string {
	text := fmt.Sprintf("%d tokens (%d in, %d out)", u.Total, u.Input, u.Output)
	if u.Estimated {
		text += ", partly estimated"
	}
	return text
}

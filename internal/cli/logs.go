package cli

import (
	"fmt"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/show"
)

type logsCmd struct {
	ID    string `arg:"" name:"run" help:"The run."`
	After int64  `help:"Only rows with a higher sequence number."`
	Limit int    `help:"How many rows at most."`
	connection
}

// Help is shown under --help.
func (logsCmd) Help() string {
	return `Examples:
  longstop logs RUN
  longstop logs RUN --json | jq .items[].recovery_source`
}

// Run shows a run's step log.
func (c *logsCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		l, err := s.Logs(a.ctx, c.ID, client.Records{After: c.After, Limit: c.Limit})
		if err != nil {
			return err
		}
		var rows [][]string
		for _, v := range l.Items {
			source := string(v.RecoverySource)
			if source == "" {
				source = "-"
			}
			text := v.Message
			if text == "" {
				text = v.Error
			}
			rows = append(rows, []string{v.At.Local().Format("15:04:05.000"), fmt.Sprint(v.StepIndex), v.StepID, fmt.Sprint(v.Attempt), v.Status, source, show.Millis(v.DurationMS), show.Line(text, 100)})
		}
		defer a.more(c.JSON, l.Next)
		return a.table(c.JSON, l, []string{"at", "step", "id", "attempt", "what", "recovery_source", "took", "message"}, rows)
	})
}

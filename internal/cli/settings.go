package cli

import (
	"fmt"
	"strings"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/show"
)

type settingsCmd struct {
	List  settingsListCmd  `cmd:"" help:"Every setting and where its value comes from."`
	Get   settingsGetCmd   `cmd:"" help:"One setting."`
	Set   settingsSetCmd   `cmd:"" help:"Set a setting."`
	Unset settingsUnsetCmd `cmd:"" help:"Back to the default."`
}

// scoped says for what settings are asked.
type scoped struct {
	Workflow string `placeholder:"NAME" help:"As they hold for this workflow."`
	Step     string `placeholder:"STEP" help:"As they hold for this step of the workflow, by id or index."`
}

type settingsListCmd struct {
	scoped
	connection
}

// Help is shown under --help.
func (settingsListCmd) Help() string {
	return `Examples:
  longstop settings list
  longstop settings list --workflow nightly-sync --step user`
}

// Run lists the settings.
func (c *settingsListCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		l, err := s.SettingsFor(a.ctx, c.Workflow, c.Step)
		if err != nil {
			return err
		}
		var rows [][]string
		for _, v := range l.Items {
			rows = append(rows, []string{v.Key, settingText(v), v.Source, v.About})
		}
		return a.table(c.JSON, l, []string{"setting", "value", "from", "what it is"}, rows)
	})
}

// settingText is a setting's value as it may be shown.
func settingText(v client.Setting) string {
	switch {
	case v.Value != nil:
		return *v.Value
	case v.Set != nil && *v.Set:
		return "(set)"
	}
	return "-"
}

func (a *app) showSetting(asJSON bool, v *client.Setting) error {
	if asJSON {
		return a.printJSON(v)
	}
	fmt.Fprintf(a.out, "%s = %s  %s\n", v.Key, show.Clean(settingText(*v)), a.ink.Faint("("+v.Source+")"))
	if v.Name != "" {
		fmt.Fprintf(a.out, "  agent: %s  %s\n", show.Line(v.Name, 100), a.ink.Faint(show.Line(v.Description, 120)))
	}
	switch {
	case v.EndpointOrigin != "" && v.URLOrigin == "":
		fmt.Fprintf(a.out, "  sent to %s and nowhere else\n", v.EndpointOrigin)
	case v.EndpointOrigin != "":
		fmt.Fprintf(a.out, "  card from %s, calls go to %s\n", v.URLOrigin, v.EndpointOrigin)
	}
	for _, w := range v.Warnings {
		fmt.Fprintln(a.out, a.ink.Warn("  warning: "+show.Line(w, 300)))
	}
	return nil
}

type settingsGetCmd struct {
	Key string `arg:"" name:"setting" help:"Such as recovery.timeout_ms."`
	scoped
	connection
}

// Help is shown under --help.
func (settingsGetCmd) Help() string {
	return `Example:
  longstop settings get recovery.a2a_agent_url`
}

// Run shows a setting.
func (c *settingsGetCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		v, err := s.SettingFor(a.ctx, c.Key, c.Workflow, c.Step)
		if err != nil {
			return err
		}
		return a.showSetting(c.JSON, v)
	})
}

type settingsSetCmd struct {
	Key   string `arg:"" name:"setting" help:"Such as recovery.a2a_agent_url."`
	Value string `arg:"" help:"The value; - reads it from standard input, so that a token is in no shell history."`
	connection
}

// Help is shown under --help.
func (settingsSetCmd) Help() string {
	return `Examples:
  longstop settings set recovery.a2a_agent_url https://my-agent.example.com
  longstop settings set recovery.mcp_server_id mine
  printf %s "$TOKEN" | longstop settings set recovery.a2a_auth_token -`
}

// Run sets a setting.
func (c *settingsSetCmd) Run(a *app) error {
	value := c.Value
	if value == "-" {
		b, err := a.value("-")
		if err != nil {
			return err
		}
		value = strings.TrimSpace(string(b))
	}
	return c.with(a, func(s *session) error {
		v, err := s.PutSetting(a.ctx, c.Key, value)
		if err != nil {
			return err
		}
		return a.showSetting(c.JSON, v)
	})
}

type settingsUnsetCmd struct {
	Key string `arg:"" name:"setting"`
	connection
}

// Help is shown under --help.
func (settingsUnsetCmd) Help() string {
	return `Example:
  longstop settings unset recovery.a2a_agent_url`
}

// Run removes a setting.
func (c *settingsUnsetCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		v, err := s.DeleteSetting(a.ctx, c.Key)
		if err != nil {
			return err
		}
		return a.showSetting(c.JSON, v)
	})
}

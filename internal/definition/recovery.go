package definition

import (
	"fmt"
	"slices"
	"strings"
)

// recoveryKeys are the settings that a workflow or step may set, without
// their prefix.
func recoveryKeys() []string {
	return []string{"mode", "mcp_server_id", "timeout_ms", "agent_timeout", "max_attempts", "builtin", "code_fix_approval", "allowed_hosts", "human_timeout"}
}

// recovery reads recovery settings as the texts that settings are stored as,
// under their full keys. Whether a value is in range is for whoever knows the
// workspace.
func (c *checker) recovery(v *value, field string) map[string]string {
	if v == nil || v.kind == null || !c.object(v, field, "recovery") {
		return nil
	}
	settings := map[string]string{}
	for _, m := range v.members {
		key, at := strings.TrimPrefix(m.key, "recovery."), fieldPath(field, []string{m.key})
		switch {
		case key == "a2a_agent_url" || key == "a2a_auth_token":
			c.wrong(m.line, at, fmt.Sprintf("recovery.%s belongs to the workspace, not to a definition", key), fmt.Sprintf("longstop settings set recovery.%s VALUE", key))
		case !slices.Contains(recoveryKeys(), key):
			c.wrong(m.line, at, fmt.Sprintf("unknown recovery setting %q", clip(m.key)), suggest(key, recoveryKeys()))
		case key != m.key:
			c.wrong(m.line, at, "stands without its prefix here", key)
		default:
			if s, ok := c.setting(m, key, at); ok {
				settings["recovery."+key] = s
			}
		}
	}
	if len(settings) == 0 {
		return nil
	}
	return settings
}

func (c *checker) setting(m entry, key, field string) (string, bool) {
	switch v := m.value; {
	case v.kind == list && key == "allowed_hosts":
		var hosts []string
		for i, one := range v.items {
			if one.kind != text || strings.Contains(one.text, ",") {
				c.wrong(one.line, fmt.Sprintf("%s[%d]", field, i), "is not a host", "a list of hosts, such as [api.example.com]")
				return "", false
			}
			hosts = append(hosts, one.text)
		}
		return strings.Join(hosts, ","), true
	case v.kind == list || v.kind == object || v.kind == null || v.text == "":
		c.wrong(m.line, field, fmt.Sprintf("is %s", describe(v)), "a value as settings have it, or leave it out")
	case strings.Contains(v.text, "{{"):
		c.wrong(m.line, field, "settings hold no templates", "a value as it is")
	default:
		return v.text, true
	}
	return "", false
}

package access

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/a2a"
	"github.com/longstop-dev/longstop/internal/flow"
)

// The settings that are more than a text.
const (
	keyAgentURL   = "recovery.a2a_agent_url"
	keyAgentToken = "recovery.a2a_auth_token"
	keyMCPServer  = "recovery.mcp_server_id"
	keyBuiltin    = "recovery.builtin"

	keyCardKeys     = "agents.card_keys"
	keyNotifyURL    = "notify.url"
	keyNotifySecret = "notify.secret"
)

// holds is what settings make up together.
type holds struct {
	recovery flow.RecoverySettings
	limits   flow.Limits
	gates    flow.GatePolicy
	cards    a2a.CardPolicy
}

// rule describes a setting. To add one, add it to [rules].
type rule struct {
	key   string
	def   string
	about string
	fix   string // what a right value is
	// check says what is wrong with a value, in a phrase that follows it: "is
	// out of range". It never sees an empty one.
	check func(value string) string
	// set takes over a value that check found right.
	set func(h *holds, value string)
	// own marks a setting that only the workspace has, never a definition.
	own bool
	// writeOnly marks one whose value is never shown.
	writeOnly bool
}

// rules gives the settings that this version serves, by key.
func rules() map[string]rule {
	all := []rule{
		{key: keyMCPServer, about: "the MCP server that is asked first when a step fails", fix: "the id of a registered MCP server",
			check: func(v string) string {
				if !serverID().MatchString(v) {
					return "is no id of an MCP server"
				}
				return ""
			},
			set: func(h *holds, v string) { h.recovery.MCPServerID = v }},
		duration("recovery.timeout_ms", 15000, 1000, 60000, time.Millisecond, "how long a responder may take",
			func(h *holds, d time.Duration) { h.recovery.Timeout = d }),
		{key: keyAgentURL, about: "the A2A agent that is asked first when a step fails", fix: "an https URL of an agent whose card can be read", own: true,
			check: checkAgentURL, set: func(h *holds, v string) { h.recovery.A2AAgentURL = v }},
		{key: keyAgentToken, about: "the bearer token for that agent", fix: "8 to 8192 printable characters without spaces, and without the word Bearer",
			own: true, writeOnly: true, check: checkToken, set: func(*holds, string) {}},
		oneOf("recovery.mode", "how a failed step's own agent is asked", []string{"sync", "agent", "observe"}, nil,
			func(h *holds, v string) { h.recovery.Mode = v }),
		duration("recovery.agent_timeout", 300, 30, 3600, time.Second, "how long the inbox waits for an agent",
			func(h *holds, d time.Duration) { h.recovery.AgentTimeout = d }),
		whole("recovery.max_attempts", 2, 1, 5, "", "recovery attempts of an episode, after which a person is called",
			func(h *holds, n int64) { h.recovery.MaxAttempts = int(n) }),
		oneOf(keyBuiltin, "the built-in responder", []string{"rules", "model", "off"}, nil,
			func(h *holds, v string) { h.recovery.Builtin = v }),
		oneOf("recovery.code_fix_approval", "whether a person approves code that an agent wrote", []string{"always", "never"}, nil,
			func(h *holds, v string) { h.recovery.CodeFixApproval = v }),
		{key: "recovery.allowed_hosts", about: "hosts to which a mend may move a request with its secrets",
			fix: "host names or host:port, separated by commas", check: checkHosts,
			set: func(h *holds, v string) { h.recovery.AllowedHosts = hostList(v) }},
		duration("recovery.human_timeout", 604800, 60, 2592000, time.Second, "how long a run waits for a person before it fails",
			func(h *holds, d time.Duration) { h.recovery.HumanTimeout = d }),
	}
	all = append(all,
		ownLimit(oneOf("gates.self_approval", "whether people may approve what is their own: a run that they started, code that their key sent in", []string{"allow", "deny"}, nil,
			func(h *holds, v string) { h.gates.DenySelfApproval = v == "deny" })),
		ownLimit(reminder("gates.remind_every", 86400, 60, 2592000, "how often a gate that waits for a person sends a reminder, where a step does not say",
			func(h *holds, d time.Duration) { h.gates.RemindEvery = d })))
	all = append(all, modelRules()...)
	limits := flow.DefaultLimits()
	all = append(all,
		ownLimit(whole("limits.output_bytes", limits.OutputBytes, 1<<10, 100<<20, "bytes", "the largest output of a step",
			func(h *holds, n int64) { h.limits.OutputBytes = n })),
		ownLimit(whole("limits.answer_bytes", limits.AnswerBytes, 1<<10, 64<<20, "bytes", "the largest answer of a responder",
			func(h *holds, n int64) { h.limits.AnswerBytes = n })),
		ownLimit(duration("limits.step_timeout_ms", limits.StepTimeout.Milliseconds(), 1000, 3600000, time.Millisecond, "the longest time-out that a mend may set",
			func(h *holds, d time.Duration) { h.limits.StepTimeout = d })))
	out := map[string]rule{}
	for _, r := range slices.Concat(all, notifyRules(), cardRules()) {
		out[r.key] = r
	}
	return out
}

// later lists settings that a later version serves: not unknown, but not here.
func later() []string {
	return []string{"limits.retention_days"}
}

func ownLimit(r rule) rule { r.own = true; return r }

func whole(key string, def, min, max int64, unit, about string, set func(*holds, int64)) rule {
	between := strings.TrimSpace(fmt.Sprintf("%d to %d %s", min, max, unit))
	return rule{key: key, def: strconv.FormatInt(def, 10), about: about, fix: "a whole number, " + between,
		check: func(v string) string {
			n, err := strconv.ParseInt(v, 10, 64)
			if errors.Is(err, strconv.ErrSyntax) || strings.HasPrefix(v, "+") {
				return "is not a whole number"
			}
			if err != nil || n < min || n > max {
				return "is out of range"
			}
			if strconv.FormatInt(n, 10) != v {
				return "is not written as a plain number"
			}
			return ""
		},
		set: func(h *holds, v string) {
			n, _ := strconv.ParseInt(v, 10, 64) // checked
			set(h, n)
		}}
}

func duration(key string, def, min, max int64, unit time.Duration, about string, set func(*holds, time.Duration)) rule {
	name := "seconds"
	if unit == time.Millisecond {
		name = "milliseconds"
	}
	return whole(key, def, min, max, name, about, func(h *holds, n int64) { set(h, time.Duration(n)*unit) })
}

// reminder is a duration in seconds that may be 0, for never.
func reminder(key string, def, min, max int64, about string, set func(*holds, time.Duration)) rule {
	r := duration(key, def, min, max, time.Second, about, set)
	check := r.check
	r.fix += ", or 0 for never"
	r.check = func(v string) string {
		if v == "0" {
			return ""
		}
		return check(v)
	}
	return r
}

// oneOf is a choice, of which the first is the default; of notYet this version
// knows the words only.
func oneOf(key, about string, served, notYet []string, set func(*holds, string)) rule {
	return rule{key: key, def: served[0], about: about, fix: strings.Join(served, " or "),
		check: func(v string) string {
			if slices.Contains(notYet, v) {
				return "is not served by this version yet"
			}
			if !slices.Contains(served, v) {
				return "is none of the values"
			}
			return ""
		}, set: set}
}

func checkAgentURL(v string) string {
	u, err := url.Parse(v)
	switch {
	case len(v) > 2048:
		return "is too long for a URL"
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		return "is no absolute URL"
	case u.User != nil:
		return "holds a user name"
	case u.Fragment != "":
		return "holds a fragment"
	}
	return ""
}

func checkToken(v string) string {
	if len(v) < 8 || len(v) > 8192 {
		return "has a wrong length"
	}
	for _, r := range v {
		if r <= ' ' || r > '~' {
			return "holds a space or something that a header cannot carry"
		}
	}
	return ""
}

func checkHosts(v string) string {
	hosts := hostList(v)
	if len(hosts) == 0 {
		return "names no host"
	}
	for _, host := range hosts {
		if !isHost(host) {
			return "names " + strconv.Quote(clip(host)) + ", which is no host"
		}
	}
	return ""
}

// isHost tells whether a text is a name or an address, with a port or without.
// What an address would have to be guessed from, such as 127.1 or 0x7f.0.0.1,
// is none.
func isHost(host string) bool {
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	if _, err := netip.ParseAddrPort(host); err == nil {
		return true
	}
	name, port, hasPort := strings.Cut(host, ":")
	if n, err := strconv.ParseUint(port, 10, 16); hasPort && (err != nil || n == 0) {
		return false
	}
	known := regexp.MustCompile(`^([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.?$`)
	number := regexp.MustCompile(`(^|\.)(0x[0-9a-f]*|[0-9]+)\.?$`) // the last label of an address
	return len(name) <= 253 && known.MatchString(name) && !number.MatchString(name)
}

// hostList splits a comma list into hosts, in lower case.
func hostList(v string) []string {
	var out []string
	for _, host := range strings.Split(v, ",") {
		if host = strings.ToLower(strings.TrimSpace(host)); host != "" {
			out = append(out, host)
		}
	}
	return out
}

// wrong makes the error for a value of the setting. The value of a write-only
// setting is not repeated.
func (r rule) wrong(value, why string) *flow.Error {
	shown := strconv.Quote(clip(value))
	if r.writeOnly || r.key == keyAgentURL || r.key == keyModelURL || r.key == keyNotifyURL { // a URL may hold a key of its own
		shown = "the value"
	}
	return flow.Errorf(flow.CodeInvalid, "%s %s", shown, why).At(r.key).Right(r.fix)
}

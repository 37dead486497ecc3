package definition

import (
	"fmt"
	"regexp"
	"strings"
)

// look says what a step's description leaves out, by the type that it seems
// to be of.
func (o *Outline) look(i int, s OutlineStep, d described) {
	at := fmt.Sprintf("steps[%d]", i)
	has := func(pattern string) bool { return regexp.MustCompile(`(?i)` + pattern).MatchString(s.text) }
	switch s.Type {
	case "":
		o.miss(s.Line, at+".type", "it does not say what kind of step this is", "say what it does: call an address, call a tool, compute, decide, wait, or ask a person")
	case "http_request":
		if !has(`https?://[^\s/)]`) && !has(`\{\{`) {
			o.miss(s.Line, at+".url", "it calls something and names no address", "the whole address, such as https://api.example.com/users")
		}
		if has(`http://`) {
			o.ask(s.Line, at+".url", "the address is not https", "https, unless the server's egress allows that place")
		}
		if !has(`\b(GET|POST|PUT|PATCH|DELETE|HEAD)\b`) && has(`\b(create|update|delete|remove|send|upload|post|write|save)`) {
			o.ask(s.Line, at+".method", "it changes something and names no method", "POST, PUT, PATCH or DELETE")
		}
		if has(`\b(POST|PUT|PATCH)\b`) && !has(`\b(body|payload|json|with|containing)\b`) {
			o.ask(s.Line, at+".body", "it does not say what is sent", "the members of the body")
		}
	case "mcp_call":
		if !regexp.MustCompile("`[^`]+`").MatchString(s.text) {
			o.miss(s.Line, at+".tool", "it calls a tool and names none", "the server and the tool in `backticks`; cffbrw://plan/tools lists them")
		}
	case "wait":
		if !has(`\d+ ?(ms|s|sec|second|m|min|minute|h|hour|d|day|week)`) && !has(`\b(until|\d{4}-\d\d-\d\d|a (minute|hour|day|week)|an hour)\b`) {
			o.miss(s.Line, at+".for", "it waits and does not say for how long", "a time, such as 10 minutes, or an instant")
		}
	case "conditional":
		if !has(`\b(else|otherwise|if not)\b`) && !strings.Contains(strings.ToLower(strings.Join(d.lines[s.Line:], "\n")), "otherwise") {
			o.ask(s.Line, at+".else", "it does not say what happens otherwise", "the other case, or that nothing happens then")
		}
	case "human_approval":
		if !has(`\b\d+ ?(h|hour|d|day|week|minute)|deadline|within\b`) {
			o.ask(s.Line, at+".deadline", "it does not say how long a person has, and what holds if nobody answers", "a deadline, and approve or refuse as default")
		}
	}
	if has(`\b(token|api[- ]?key|password|credential|bearer|authenticat\w+|log ?in)\b`) && !has(`secrets\.|secret `) {
		o.miss(s.Line, at+".secrets", "it needs a credential and does not say which secret holds it", "the secret's name: {{ secrets.name }}")
	}
}

// lookAtAll says what is wrong with the description as a whole.
func (o *Outline) lookAtAll(d described) {
	input := regexp.MustCompile(`\binput\.([A-Za-z_]\w*)`)
	open := regexp.MustCompile(`(?i)\b(TODO|TBD|FIXME|XXX)\b|\?\?\?|<(your|some|the|insert)[ -][^>]*>`)
	secret := regexp.MustCompile(`\b(sk|pk|ghp|xox[abp]|AKIA)[-_]?[A-Za-z0-9_-]{12,}|(?i)\b(bearer|password:?|token:?)\s+[A-Za-z0-9+/_.-]{20,}`)
	schedule := regexp.MustCompile(`(?i)\b(every (day|night|hour|minute|week|month|monday)|cron|schedule[ds]?)\b`)
	told := strings.ToLower(d.input)
	asked := map[string]bool{}
	for i, line := range d.lines {
		n := i + 1
		if m := open.FindString(line); m != "" {
			o.miss(n, "description", fmt.Sprintf("%q is left open", m), "say it, or take it out")
		}
		if secret.MatchString(line) {
			o.miss(n, "secrets", "a secret seems to stand in the description", "store it (PUT /v1/secrets/{name}), and write {{ secrets.name }}; whoever has read this has it")
		}
		for _, m := range input.FindAllStringSubmatch(line, -1) {
			if name := strings.ToLower(m[1]); !strings.Contains(told, name) && !asked[name] {
				asked[name] = true
				o.miss(n, "input."+m[1], "it is used and not described", "a heading ## Input that says what "+m[1]+" is")
			}
		}
		if schedule.MatchString(line) && !asked["*schedule"] {
			asked["*schedule"] = true
			o.ask(n, "schedule", "a plan does not say when it runs", "start it from a scheduler of yours, with POST /v1/workflows/{name}/runs")
		}
	}
	text := strings.Join(d.lines, "\n")
	if len(o.Steps) > 0 && !regexp.MustCompile(`(?i)\b(fail\w*|errors?|retr\w+|recover\w*)\b`).MatchString(text) {
		o.ask(0, "retry", "it does not say what happens when a step fails", "which calls may be repeated; recovery does the rest")
	}
	if regexp.MustCompile("(?m)^```ya?ml\n(.*\n)*?steps:").MatchString(text) {
		o.ask(0, "description", "a plan stands in it already", "check that one with validate_plan")
	}
}

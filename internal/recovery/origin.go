package recovery

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/longstop-dev/longstop/internal/expr"
)

// route is where a mended request would go.
type route struct {
	home    string // the origin that the step's author wrote; "" if only templates know
	to      string // the origin that the request goes to; "" if the step has none
	foreign bool   // to is not home, and its host is not allowed: no secret goes along
	moves   bool   // this mend takes it to a foreign origin where it did not go before
}

// route compares origins. The measure is the origin that the author wrote, not
// the one that an earlier mend has moved to: a secret that was kept from a
// stranger is still none of its business a recovery attempt later.
func (b bench) route(request map[string]any) (route, *Rejection) {
	p := b.failure.Instance.Progress
	now := originOf(urlOf(b.failure.Config))
	w := route{home: now, to: now}
	if mended := urlOf(p.Mods); mended != "" {
		w.home = authorOrigin(b.failure.Step.Config)
	}
	if to, ok := request["url"].(string); ok {
		if w.to = originOf(to); w.to == "" {
			return w, reject("modifications.httpRequest.url", "has no host that can be called", "")
		}
	}
	if w.to == "" {
		return w, nil
	}
	w.foreign = w.to != w.home && !b.hostAllowed(w)
	w.moves = w.foreign && w.to != now
	return w, nil
}

// hostAllowed says whether the workspace lets mends take secrets to this
// origin. From https to http they never go.
func (b bench) hostAllowed(w route) bool {
	u, err := url.Parse(w.to)
	if err != nil || u.Scheme != "https" && strings.HasPrefix(w.home, "https:") {
		return false
	}
	return slices.ContainsFunc(b.settings.AllowedHosts, func(allowed string) bool {
		allowed = strings.ToLower(strings.TrimSpace(allowed))
		return allowed != "" && (allowed == u.Hostname() || allowed == u.Host)
	})
}

// originOf gives scheme, host and port, the default port left out; "" for what
// is no absolute http or https URL.
func originOf(text string) string {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port := u.Port(); port != "" && !(u.Scheme == "http" && port == "80") && !(u.Scheme == "https" && port == "443") {
		host += ":" + port
	}
	return u.Scheme + "://" + host
}

// urlOf gives the url member of a config or of modifications.
func urlOf(config json.RawMessage) string {
	if len(config) == 0 {
		return ""
	}
	var c struct {
		URL any `json:"url"`
	}
	if json.Unmarshal(config, &c) != nil {
		return ""
	}
	text, _ := c.URL.(string)
	return text
}

// authorOrigin gives the origin of the URL that stands in the definition, if
// no template has a part in it.
func authorOrigin(config json.RawMessage) string {
	text := urlOf(config)
	before, _, template := strings.Cut(text, "{{")
	if !template {
		return originOf(text)
	}
	_, rest, _ := strings.Cut(before, "://")
	if !strings.ContainsAny(rest, "/?#") {
		return "" // the template may go on with the host
	}
	return originOf(before)
}

// filled lists the JSON pointers of what templates fill in of headers, query
// and body. A list goes as a whole, since half of it would mean something
// else.
func (b bench) filled() []string {
	t, err := expr.Compile(b.failure.Step.Config)
	if err != nil {
		return []string{"/headers", "/query", "/body"} // cannot happen to a checked definition
	}
	config := decoded(b.failure.Step.Config)
	var out []string
	for _, pointer := range t.Filled() {
		whole := toList(config, pointer)
		head, _, _ := strings.Cut(strings.TrimPrefix(whole, "/"), "/")
		if head == "headers" || head == "query" || head == "body" {
			if !slices.Contains(out, whole) {
				out = append(out, whole)
			}
		}
	}
	return out
}

// toList cuts a pointer where it enters a list.
func toList(v any, pointer string) string {
	at := ""
	for _, token := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		object, ok := v.(map[string]any)
		if !ok {
			return at
		}
		at += "/" + token
		v = object[unescapeToken(token)]
	}
	return at
}

func unescapeToken(token string) string {
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
}

// lostOf lists those pointers that the mend does not supply again.
func lostOf(pointers []string, request map[string]any) []string {
	var lost []string
	for _, pointer := range pointers {
		var v any = request
		for _, token := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
			object, _ := v.(map[string]any)
			v = object[unescapeToken(token)]
		}
		if v == nil {
			lost = append(lost, pointer)
		}
	}
	return lost
}

// withdraw takes back what earlier mends gave to the origin that the request
// leaves, except what this mend supplies itself.
func withdraw(request map[string]any, earlier json.RawMessage) {
	old, _ := decoded(earlier).(map[string]any)
	for _, field := range []string{"headers", "query", "body"} {
		given, ok := old[field]
		if !ok {
			continue
		}
		mine, supplied := request[field]
		if !supplied {
			request[field] = nullified(given)
			continue
		}
		request[field] = over(mine, given)
	}
}

// over lays mine over the withdrawal of given.
func over(mine, given any) any {
	a, ok := mine.(map[string]any)
	b, both := given.(map[string]any)
	if !ok || !both {
		return mine
	}
	for key, value := range b {
		if own, has := a[key]; has {
			a[key] = over(own, value)
		} else {
			a[key] = nullified(value)
		}
	}
	return a
}

// nullified is the patch that removes what v would set.
func nullified(v any) any {
	object, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	out := make(map[string]any, len(object))
	for key, value := range object {
		out[key] = nullified(value)
	}
	return out
}

// keepSecrets refuses a mend that would take a secret to a foreign origin.
func keepSecrets(request map[string]any, w route) *Rejection {
	from := "the origin that its step was written for"
	if w.home != "" {
		from = w.home
	}
	if r := find(map[string]any(request), func(key string, v any) string {
		text, _ := v.(string)
		for _, s := range []string{key, text} {
			if i := strings.Index(s, "[secret:"); i >= 0 {
				return "holds a secret, " + quoted(s[i:]) + ", which stays with " + from + " and would go to " + w.to
			}
		}
		return ""
	}); r != nil {
		r.Fix = "leave it out, or have the host named in recovery.allowed_hosts"
		return r
	}
	return nil
}

// secretsOf gives the names of the secrets that the step's own config uses.
func (b bench) secretsOf() map[string]bool {
	own := map[string]bool{}
	template, err := expr.Compile(b.failure.Step.Config)
	if err != nil {
		return own
	}
	for _, r := range template.Refs() {
		if r.Root == "secrets" {
			own[r.Name] = true
		}
	}
	return own
}

// strangers refuses a mend that names a secret which the step itself did not
// use: a mask that an agent writes must not fetch what it was never shown.
func strangers(request map[string]any, own map[string]bool) *Rejection {
	if r := find(map[string]any(request), func(key string, v any) string {
		text, _ := v.(string)
		for _, s := range []string{key, text} {
			for {
				_, after, ok := strings.Cut(s, "[secret:")
				if !ok {
					break
				}
				name, rest, _ := strings.Cut(after, "]")
				if !own[name] {
					return "names the secret " + quoted(name) + ", which this step does not use"
				}
				s = rest
			}
		}
		return ""
	}); r != nil {
		r.Fix = "use only what the step's config shows"
		return r
	}
	return nil
}

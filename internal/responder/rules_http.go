package responder

import (
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// credentials calls a person: a credential that is refused cannot be guessed.
func credentials(q flow.Question, _ time.Time) (remedy, bool) {
	switch status(q) {
	case http.StatusUnauthorized:
		return toHuman("The credential of this request is missing, expired or wrong (HTTP 401).",
			"Renew the credential (a secret, or the step that fetches a token), then retry the step.")
	case http.StatusForbidden:
		return toHuman("The credential of this request may not do this (HTTP 403).",
			"Give it the right, or use another credential, then retry the step.")
	case http.StatusProxyAuthRequired:
		return toHuman("A proxy asks for a credential (HTTP 407).", "See why the request goes through a proxy.")
	}
	return remedy{}, false
}

// moved follows an endpoint to where it says it has gone. The guard decides
// whether that place may be called and what may go there.
func moved(q flow.Question, _ time.Time) (remedy, bool) {
	code := status(q)
	var to string
	switch code {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		to = header(q, "Location")
	case http.StatusNotFound, http.StatusGone:
		if to = header(q, "Location"); to == "" {
			to = successor(header(q, "Link"))
		}
	}
	if to == "" {
		return remedy{}, false
	}
	from := request(q).URL
	next, err := absolute(from, to)
	if err != nil || next == from {
		return remedy{}, false
	}
	if isLogin(next) {
		return toHuman(fmt.Sprintf("The request is sent to a login page (HTTP %d): %s", code, withoutQuery(next)),
			"Renew the credential of this request, then retry the step.")
	}
	return retry(fmt.Sprintf("The endpoint has moved (HTTP %d) to %s.", code, withoutQuery(next)),
		map[string]any{"httpRequest": map[string]any{"url": next}}), true
}

func absolute(from, to string) (string, error) {
	base, err := url.Parse(from)
	if err != nil {
		return "", err
	}
	u, err := base.Parse(strings.TrimSpace(to))
	if err != nil {
		return "", err
	}
	u.Fragment = ""
	return u.String(), nil
}

// isLogin tells whether a page asks people to log in.
func isLogin(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	for _, word := range strings.Split(strings.ToLower(u.Path), "/") {
		word, _, _ = strings.Cut(word, ".")
		if slices.Contains([]string{"login", "log-in", "signin", "sign-in", "sign_in", "sso", "oauth", "oauth2", "authorize", "saml"}, word) {
			return true
		}
	}
	return false
}

// successor finds in a Link header what stands in for the page.
func successor(link string) string {
	pattern := regexp.MustCompile(`<([^<>]*)>\s*((?:;\s*[^,;"]+(?:"[^"]*")?\s*)*)`)
	relation := regexp.MustCompile(`(?i);\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,"]+))`)
	found := map[string]string{}
	for _, m := range pattern.FindAllStringSubmatch(link, 20) {
		for _, r := range relation.FindAllStringSubmatch(m[2], 1) {
			for _, rel := range strings.Fields(strings.ToLower(r[1] + r[2])) {
				if found[rel] == "" {
					found[rel] = m[1]
				}
			}
		}
	}
	for _, rel := range []string{"successor-version", "alternate", "canonical"} {
		if found[rel] != "" {
			return found[rel]
		}
	}
	return ""
}

// contentType sends or asks for the media type that the server wants.
func contentType(q flow.Question, _ time.Time) (remedy, bool) {
	code := status(q)
	switch code {
	case http.StatusUnsupportedMediaType:
	case http.StatusNotAcceptable:
		want := first(mediaTypes(q.Response.Body), "*/*")
		return retry("The server cannot answer in the media type asked for (HTTP 406); asking for "+want+".", headers("Accept", want)), true
	case http.StatusBadRequest:
		if !regexp.MustCompile(`(?i)content[- _]?type|media[- ]?type`).MatchString(q.Response.Body) {
			return remedy{}, false
		}
	default:
		return remedy{}, false
	}
	now := contentTypeOf(request(q))
	want := ""
	for _, name := range append(mediaTypes(header(q, "Accept-Post")+" "+header(q, "Accept")+" "+q.Response.Body), "application/json") {
		if name != now {
			want = name
			break
		}
	}
	if want == "" {
		return remedy{}, false
	}
	return retry(fmt.Sprintf("The server does not take %s (HTTP %d); sending %s.", now, code, want), headers("Content-Type", want)), true
}

func headers(name, value string) map[string]any {
	return map[string]any{"headers": map[string]any{name: value}}
}

func contentTypeOf(s sent) string {
	text := s.ContentType
	for name, value := range s.Headers {
		if v, ok := value.(string); ok && strings.EqualFold(name, "Content-Type") {
			text = v
		}
	}
	if text == "" {
		return "application/json" // what the step sends by itself
	}
	media, _, err := mime.ParseMediaType(text)
	if err != nil {
		return text
	}
	return media
}

// mediaTypes finds the media types in a text that a request can be sent in.
func mediaTypes(text string) []string {
	pattern := regexp.MustCompile(`(?i)\b(?:application|text)/[a-z0-9][a-z0-9.+_-]{1,60}`)
	var out []string
	for _, name := range pattern.FindAllString(text[:min(len(text), 4096)], 20) {
		name = strings.TrimRight(strings.ToLower(name), ".-_+")
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

func first(list []string, otherwise string) string {
	if len(list) > 0 {
		return list[0]
	}
	return otherwise
}

// template calls a person: what a template refers to is not there, most often
// because an earlier output has changed its shape.
func template(q flow.Question, _ time.Time) (remedy, bool) {
	if q.Failed.Kind != flow.KindTemplate {
		return remedy{}, false
	}
	if strings.Contains(q.Failed.Error, "there is no secret") {
		return toHuman("This step uses a secret that is not there: "+short(q.Failed.Error, 200),
			"Store it (longstop secrets set NAME), then answer this gate with edit and {}: the step runs again as it is.")
	}
	return toHuman("A template of this step could not be filled in: "+short(q.Failed.Error, 200),
		"See whether an earlier step's output has changed its shape; give this step's output, or correct the workflow and start again.")
}

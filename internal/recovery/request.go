package recovery

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// checkURL checks the form of a new URL; where it leads is for the egress
// guard to judge.
func checkURL(request map[string]any) *Rejection {
	v, ok := request["url"]
	if !ok {
		return nil
	}
	text, ok := v.(string)
	if !ok {
		return reject("url", "must be a string", "an absolute http or https URL")
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return reject("url", "is not a URL", "an absolute http or https URL")
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return reject("url", "must be absolute, got "+quoted(text), "such as https://api.example.com/users")
	case u.User != nil:
		return reject("url", "holds a user name or a password", "send credentials in a header")
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' }):
		return reject("url", "holds a space, a backslash or a control character", "escape it")
	}
	return nil
}

func checkMethod(request map[string]any) *Rejection {
	v, ok := request["method"]
	if !ok {
		return nil
	}
	methods := []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions}
	name, ok := v.(string)
	if !ok || !slices.Contains(methods, strings.ToUpper(name)) {
		return reject("method", "must be one of "+strings.Join(methods, ", ")+", got "+quoted(string(encoded(v))), "")
	}
	request["method"] = strings.ToUpper(name)
	return nil
}

// checkHeaders refuses headers that belong to the connection, that decide
// where a request goes, or that the engine itself answers for: a used
// Idempotency-Key would have the upstream replay the failure.
func checkHeaders(request map[string]any) *Rejection {
	all, r := scalarMembers(request, "headers")
	if r != nil {
		return r
	}
	seen := map[string]bool{}
	for _, name := range sortedKeys(all) {
		at, canonical := "headers."+oneLine(name, 60), http.CanonicalHeaderKey(name)
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			return reject(at, "is not a header name", "")
		case reserved(canonical):
			return reject(at, "may not be set by a mend", "")
		case seen[canonical]:
			return reject(at, "is given twice, in other letters", "once")
		}
		seen[canonical] = true
		for _, value := range texts(all[name]) {
			if !httpguts.ValidHeaderFieldValue(value) {
				return reject(at, "holds a line break or another control character", "")
			}
		}
	}
	return nil
}

func reserved(canonical string) bool {
	switch canonical {
	case "Host", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "Te", "Trailer", "Upgrade", "Expect", "Idempotency-Key":
		return true
	}
	return strings.HasPrefix(canonical, "Proxy-")
}

func checkQuery(request map[string]any) *Rejection {
	_, r := scalarMembers(request, "query")
	return r
}

// scalarMembers reads an object of texts, numbers, booleans, lists of them, or
// null, which removes the member; null in its place removes all.
func scalarMembers(request map[string]any, field string) (map[string]any, *Rejection) {
	v, ok := request[field]
	if !ok || v == nil {
		return nil, nil
	}
	all, ok := v.(map[string]any)
	if !ok {
		return nil, reject(field, "must be an object, got "+kindOf(encoded(v)), "")
	}
	for _, name := range sortedKeys(all) {
		values, list := all[name].([]any)
		if !list {
			values = []any{all[name]}
		}
		for _, value := range values {
			switch value.(type) {
			case map[string]any, []any:
				return nil, reject(field+"."+oneLine(name, 60), "must be a text, a number, a boolean or a list of them", "")
			case nil:
				if list {
					return nil, reject(field+"."+oneLine(name, 60), "holds null in a list", "null alone removes the member")
				}
			}
		}
	}
	return all, nil
}

// texts gives the strings of a scalar or a list of scalars.
func texts(v any) []string {
	var out []string
	switch v := v.(type) {
	case string:
		out = append(out, v)
	case []any:
		for _, e := range v {
			out = append(out, texts(e)...)
		}
	}
	return out
}

// sameSpelling gives the mend's header names the letters that the config uses,
// so that one header does not go out twice.
func sameSpelling(request map[string]any, config json.RawMessage) {
	headers, ok := request["headers"].(map[string]any)
	if !ok {
		return
	}
	whole, _ := decoded(config).(map[string]any)
	present, _ := whole["headers"].(map[string]any)
	for name := range present {
		for given, value := range headers {
			if given != name && strings.EqualFold(given, name) {
				delete(headers, given)
				headers[name] = value
			}
		}
	}
}

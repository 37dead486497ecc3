// Package firstaid is a recovery agent that knows HTTP and nothing of any API
// in particular: a start for one that does. It repeats what may succeed,
// follows an API to the version that its error names, and calls a person for
// the rest. What an error body says is never followed as an instruction: of it
// the agent takes a version number, and nothing else.
package firstaid

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/agentkit"
)

// Agent makes the agent.
func Agent() *agentkit.Agent {
	return &agentkit.Agent{Name: "First aid", Description: "Repeats what may succeed, follows moved API versions, and calls a person for the rest.", Mend: Mend}
}

// Mend decides about a failed step.
func Mend(_ context.Context, c *agentkit.Case) (agentkit.Action, error) {
	if c.Step.Type != "http_request" {
		return agentkit.NeedsHuman("A step of type "+c.Step.Type+" failed; this agent knows HTTP requests only.",
			"Read the error and correct the step, or give its output."), nil
	}
	switch status := c.Status(); status {
	case 0:
		return withoutAnswer(c), nil
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return agentkit.RetryWithParams(fmt.Sprintf("%s: the same request may succeed now.", http.StatusText(status)), agentkit.Changes{}), nil
	case http.StatusUnauthorized, http.StatusForbidden:
		return agentkit.NeedsHuman("The credentials are not accepted, and an agent must not have others.",
			"Renew the credentials under Settings, then retry."), nil
	case http.StatusNotFound, http.StatusGone:
		return missing(c), nil
	default:
		return agentkit.NeedsHuman(fmt.Sprintf("The API refuses the request (%d), and will refuse it again.", status),
			"Compare the request with the API's documentation, correct it, then retry."), nil
	}
}

// withoutAnswer is for steps that got no HTTP answer at all.
func withoutAnswer(c *agentkit.Case) agentkit.Action {
	text := strings.ToLower(c.Error)
	switch {
	case strings.Contains(text, "no answer within"):
		return agentkit.RetryWithParams("The API was too slow; a second try may wait a minute.", agentkit.Changes{Timeout: time.Minute})
	case strings.Contains(text, "connection"):
		return agentkit.RetryWithParams("The connection broke; the same request may succeed now.", agentkit.Changes{})
	}
	return agentkit.NeedsHuman("The step failed without an answer of the API: "+firstLine(c.Error, 200),
		"Read the error and correct the step, or give its output.")
}

var version = regexp.MustCompile(`/v(\d{1,3})(/|\b)`)

// missing follows an API to the newer version that its error names. Host and
// the rest of the path stay as they are.
func missing(c *agentkit.Case) agentkit.Action {
	nobody := agentkit.NeedsHuman("There is nothing at this address.", "Check the address and the id in it, then retry.")
	u, err := url.Parse(c.URL())
	if err != nil {
		return nobody
	}
	have := version.FindStringSubmatch(u.Path)
	_, body, _ := strings.Cut(c.Error, "\n")
	named := version.FindStringSubmatch(body)
	if have == nil || named == nil || named[1] == have[1] {
		return nobody
	}
	u.Path = strings.Replace(u.Path, "/v"+have[1]+have[2], "/v"+named[1]+have[2], 1)
	return agentkit.RetryWithParams(fmt.Sprintf("The API has moved from v%s to v%s.", have[1], named[1]), agentkit.Changes{URL: u.String()})
}

// firstLine is the beginning of a text, of at most n characters.
func firstLine(text string, n int) string {
	text, _, _ = strings.Cut(text, "\n")
	if r := []rune(text); len(r) > n {
		return string(r[:n])
	}
	return text
}

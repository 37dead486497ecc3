package a2a

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// FetchCard reads and validates the card of the agent at a URL, as a recovery
// agent is named. The full URL of a card is used untouched; below any other
// URL the well-known places are tried, then the URL itself. No credential is
// ever sent. The error is a [PlaceError] with an [ErrCard] if something was
// there but is not a usable card, else with that of the transport or with the
// [StatusError] that says most.
func (c *Client) FetchCard(ctx context.Context, rawURL string) (*Card, error) {
	return c.fetch(ctx, rawURL, CardPolicy{}, cardPlaces(rawURL))
}

// FetchSigned is [Client.FetchCard] for an agent hosted elsewhere, whose card
// has to satisfy a policy: it is named by the URL of its card, which counts as
// it is unless it is a bare origin.
func (c *Client) FetchSigned(ctx context.Context, rawURL string, p CardPolicy) (*Card, error) {
	places := cardPlaces(rawURL)
	if i := slices.Index(places, rawURL); i > 0 {
		places = slices.Insert(slices.Delete(places, i, i+1), 0, rawURL)
	}
	return c.fetch(ctx, rawURL, p, places)
}

func (c *Client) fetch(ctx context.Context, rawURL string, p CardPolicy, places []string) (*Card, error) {
	if _, err := parseEndpoint(rawURL); err != nil {
		return nil, fault(ErrCard, "%s cannot be fetched: %v", shown(rawURL), err)
	}
	var telling error
	for _, place := range places {
		card, err := c.readCard(ctx, place, p)
		if err == nil {
			card.Source = place
			return card, nil
		}
		err = &PlaceError{Place: shown(place), Err: err}
		if says(err) == saysNothing {
			return nil, err
		}
		if telling == nil || says(err) > says(telling) {
			telling = err
		}
	}
	return nil, telling
}

// How much an error says about where the card of an agent is.
const (
	saysNothing = iota // the agent is away: no other place would answer
	saysNotHere
	saysSomething // a page, a refusal, a redirect
	saysCard      // something that was meant to be a card
)

func says(err error) int {
	var status *StatusError
	switch {
	case errors.Is(err, ErrCard):
		return saysCard
	case errors.As(err, &status) && (status.Status == http.StatusNotFound || status.Status == http.StatusMethodNotAllowed):
		return saysNotHere
	case errors.As(err, &status), errors.Is(err, ErrHTML):
		return saysSomething
	}
	return saysNothing
}

// PlaceError is why a card could not be read at one place.
type PlaceError struct {
	Place string // without its query
	Err   error
}

// Error is what was found there, and where.
func (e *PlaceError) Error() string { return e.Err.Error() + ", at " + e.Place }

// Unwrap gives what was found there.
func (e *PlaceError) Unwrap() error { return e.Err }

func (c *Client) readCard(ctx context.Context, place string, p CardPolicy) (*Card, error) {
	resp, err := c.exchange(ctx, request{method: http.MethodGet, url: place, version: V1.version()})
	if err != nil {
		return nil, err
	}
	switch body := trimBOM(resp.body); {
	case resp.status < 200 || resp.status > 299:
		return nil, resp.statusError(nil)
	case resp.tooLarge:
		return nil, fault(ErrTooLarge, "an agent card of more than %d bytes", len(resp.body)-1)
	case strings.HasPrefix(string(body[:min(len(body), 1)]), "<"):
		return nil, &Fault{Kind: ErrHTML, Detail: "where its card was expected"}
	}
	card, err := p.read(resp.body)
	if err != nil {
		return nil, err
	}
	return card, card.Validate()
}

// cardPlaces lists where the card of an agent may be.
func cardPlaces(rawURL string) []string {
	u, err := url.Parse(rawURL)
	if err != nil || strings.HasSuffix(u.Path, ".json") || strings.Contains(u.Path, "/.well-known/") {
		return []string{rawURL}
	}
	places := []string{under(rawURL, ".well-known/agent-card.json"), under(rawURL, ".well-known/agent.json")}
	if strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		places = append(places, rawURL)
	}
	return places
}

package a2a

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// FetchCard reads and validates the card of the agent at a URL. The full URL
// of a card is used untouched; below any other URL the well-known places are
// tried, then the URL itself. No credential is ever sent. The error is an
// [ErrCard] if something was there but is not a usable card, else that of the
// transport or the [StatusError] of the first place.
func (c *Client) FetchCard(ctx context.Context, rawURL string) (*Card, error) {
	return c.FetchSigned(ctx, rawURL, CardPolicy{})
}

// FetchSigned is [Client.FetchCard] for a card that has to satisfy a policy.
func (c *Client) FetchSigned(ctx context.Context, rawURL string, p CardPolicy) (*Card, error) {
	if _, err := parseEndpoint(rawURL); err != nil {
		return nil, fault(ErrCard, "%s cannot be fetched: %v", shown(rawURL), err)
	}
	var telling error
	for _, place := range cardPlaces(rawURL) {
		card, err := c.readCard(ctx, place, p)
		if err == nil {
			card.Source = place
			return card, nil
		}
		var status *StatusError
		if !errors.Is(err, ErrCard) && !errors.Is(err, ErrHTML) && !errors.As(err, &status) {
			return nil, err
		}
		if telling == nil || !errors.Is(telling, ErrCard) && errors.Is(err, ErrCard) {
			telling = err
		}
	}
	return nil, telling
}

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

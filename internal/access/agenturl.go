package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/longstop-dev/longstop/internal/flow"
)

// putAgentURL saves the URL of the workspace's A2A agent: the URL passes the
// egress guard, its card is read, and both origins are kept and shown.
//
// The token belongs to the origin that was shown when it was saved. A URL
// whose calls go elsewhere loses it, so that nobody who may change the URL can
// have the token sent to a place of their own.
func (s *Service) putAgentURL(ctx context.Context, by flow.Caller, r rule, row flow.Setting) (*SettingView, error) {
	if err := s.c.Egress.CheckURL(ctx, row.Value); err != nil {
		return nil, refusedURL(r.key, "the URL may not be called", err)
	}
	info, err := s.c.Cards.Read(ctx, row.Value)
	if err != nil {
		return nil, refusedURL(r.key, "the agent card cannot be used", err)
	}
	if info.Name == "" || info.EndpointOrigin == "" {
		return nil, flow.Errorf(flow.CodeInvalid, "the agent card lacks a name or an endpoint").At(r.key).
			Right("a card with a name and a JSONRPC or HTTP+JSON interface, or a top-level url")
	}
	if err := s.c.Egress.CheckURL(ctx, info.EndpointOrigin+"/"); err != nil {
		return nil, refusedURL(r.key, "the agent card names an endpoint at "+clip(info.EndpointOrigin)+", which may not be called", err)
	}
	if row.Meta, err = json.Marshal(info); err != nil {
		return nil, flow.Errorf(flow.CodeInternal, "the agent card cannot be stored").Because(err)
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	stored, err := s.stored(ctx, row.Workspace)
	if err != nil {
		return nil, err
	}
	defer s.forget(row.Workspace)
	warnings := cardWarnings(info)
	if token, ok := stored[keyAgentToken]; ok {
		lost, err := s.moveToken(ctx, by, token, info.EndpointOrigin)
		if err != nil {
			return nil, err
		}
		if lost {
			warnings = append(warnings, fmt.Sprintf("%s was removed, because it was saved for another origin than %s: set it again if this agent needs it",
				keyAgentToken, info.EndpointOrigin))
		}
	}
	if err := s.c.Settings.PutSetting(ctx, row, r.did(by, row)); err != nil {
		return nil, err
	}
	v := r.view(map[string]flow.Setting{row.Key: row})
	v.Warnings = warnings
	return &v, nil
}

func cardWarnings(info CardInfo) []string {
	var out []string
	if info.Description == "" {
		out = append(out, "the agent card has no description")
	}
	if info.URLOrigin != info.EndpointOrigin {
		out = append(out, fmt.Sprintf("the card is read at %s, but calls and the token go to %s", info.URLOrigin, info.EndpointOrigin))
	}
	return out
}

// moveToken ties a token that was saved before any URL to the origin, and
// removes one that is tied to another.
func (s *Service) moveToken(ctx context.Context, by flow.Caller, token flow.Setting, origin string) (lost bool, err error) {
	switch tokenOrigin(token) {
	case origin:
		return false, nil
	case "":
		token.Meta = tokenMeta(origin)
		return false, s.c.Settings.PutSetting(ctx, token)
	}
	return true, s.c.Settings.DeleteSetting(ctx, token.Workspace, token.Key, s.removed(by, token.Key))
}

// putAgentToken seals the token and ties it to the endpoint's origin of the
// URL that is set, if one is.
func (s *Service) putAgentToken(ctx context.Context, by flow.Caller, r rule, row flow.Setting) (*SettingView, error) {
	sealed, err := s.seal(row.Workspace, "setting/"+row.Key, []byte(row.Value))
	if err != nil {
		return nil, err
	}
	row.Value, row.Sealed = "", sealed
	s.writing.Lock()
	defer s.writing.Unlock()
	stored, err := s.stored(ctx, row.Workspace)
	if err != nil {
		return nil, err
	}
	row.Meta = tokenMeta(cardInfo(stored[keyAgentURL]).EndpointOrigin)
	defer s.forget(row.Workspace)
	if err := s.c.Settings.PutSetting(ctx, row, r.did(by, row)); err != nil {
		return nil, err
	}
	v := r.view(map[string]flow.Setting{row.Key: row})
	return &v, nil
}

// cardInfo is what was learned when the URL was saved.
func cardInfo(row flow.Setting) CardInfo {
	var info CardInfo
	if len(row.Meta) > 0 && json.Unmarshal(row.Meta, &info) != nil {
		return CardInfo{}
	}
	return info
}

type tokenFacts struct {
	Origin string `json:"origin"`
}

func tokenMeta(origin string) json.RawMessage {
	raw, err := json.Marshal(tokenFacts{origin})
	if err != nil {
		return nil // cannot happen to a string
	}
	return raw
}

// tokenOrigin is where the token may be sent, or "" if no URL was ever set.
func tokenOrigin(row flow.Setting) string {
	var facts tokenFacts
	if len(row.Meta) > 0 && json.Unmarshal(row.Meta, &facts) != nil {
		return "unknown"
	}
	return facts.Origin
}

// refusedURL turns what egress or a card's reader said into an answer for
// whoever saves the URL.
func refusedURL(field, what string, err error) error {
	out := flow.Errorf(flow.CodeInvalid, "%s: %v", what, err).At(field).Because(err)
	var known *flow.Error
	if errors.As(err, &known) {
		out.Message, out.Fix = what+": "+known.Message, known.Fix
	}
	return out
}

// seal seals for the database.
func (s *Service) seal(workspace, name string, plain []byte) ([]byte, error) {
	sealed, err := s.c.Keyring.Seal(workspace, name, plain)
	if err != nil {
		return nil, flow.Errorf(flow.CodeInternal, "the value cannot be sealed").Because(err)
	}
	return sealed, nil
}

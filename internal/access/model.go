package access

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/longstop-dev/longstop/internal/flow"
)

// The settings of the built-in model.
const (
	keyModelURL = "model.url"
	keyModelKey = "model.key"
)

// What is asked where a workspace names no other: a flash-lite class model
// behind an OpenAI-compatible API. With these only a key is missing.
const (
	defaultModelURL    = "https://generativelanguage.googleapis.com/v1beta/openai"
	defaultModelName   = "gemini-2.5-flash-lite"
	defaultDailyTokens = 1_000_000
)

// modelRules are the settings of the built-in model.
func modelRules() []rule {
	return []rule{
		{key: keyModelURL, def: defaultModelURL, about: "the OpenAI-compatible API that the built-in model is asked at", own: true,
			fix:   "an https URL, such as https://api.openai.com/v1; /chat/completions is added if it does not end so",
			check: checkAgentURL, set: func(h *holds, v string) { h.recovery.Model.URL = v }},
		{key: "model.name", def: defaultModelName, about: "the model that answers where recovery.builtin is model", own: true,
			fix: "the name that the API knows the model by", check: checkModelName, set: func(h *holds, v string) { h.recovery.Model.Name = v }},
		{key: keyModelKey, about: "the API key for model.url", fix: "8 to 8192 printable characters without spaces",
			own: true, writeOnly: true, check: checkToken, set: func(*holds, string) {}},
		ownLimit(whole("model.daily_tokens", defaultDailyTokens, 0, 1_000_000_000_000, "", "tokens that the model may use in a day (UTC), after which the built-in rules answer; 0 for no limit",
			func(h *holds, n int64) { h.recovery.Model.DailyTokens = n })),
	}
}

func checkModelName(v string) string {
	if len(v) > 200 || strings.ContainsFunc(v, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "cannot be the name of a model"
	}
	return ""
}

// putModelURL saves where the model is asked. A key that was saved for another
// origin is removed, so that nobody who may change the URL can have the key
// sent to a place of their own.
func (s *Service) putModelURL(ctx context.Context, by flow.Caller, r rule, row flow.Setting) (*SettingView, error) {
	if err := s.c.Egress.CheckURL(ctx, row.Value); err != nil {
		return nil, refusedURL(r.key, "the URL may not be called", err)
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	defer s.forget(row.Workspace)
	warnings, err := s.dropModelKey(ctx, by, row.Value)
	if err != nil {
		return nil, err
	}
	if err := s.c.Settings.PutSetting(ctx, row, r.did(by, row)); err != nil {
		return nil, err
	}
	v := r.view(map[string]flow.Setting{row.Key: row})
	v.Warnings = warnings
	return &v, nil
}

// removeModelURL goes back to the default's place, with the same care.
func (s *Service) removeModelURL(ctx context.Context, by flow.Caller, r rule) (*SettingView, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	defer s.forget(by.Workspace)
	warnings, err := s.dropModelKey(ctx, by, defaultModelURL)
	if err != nil {
		return nil, err
	}
	if err := s.c.Settings.DeleteSetting(ctx, by.Workspace, r.key, s.removed(by, r.key)); err != nil {
		return nil, err
	}
	v := r.view(nil)
	v.Warnings = warnings
	return &v, nil
}

// dropModelKey removes the key if it was saved for another origin than that of
// the URL, and says so.
func (s *Service) dropModelKey(ctx context.Context, by flow.Caller, rawURL string) ([]string, error) {
	stored, err := s.stored(ctx, by.Workspace)
	if err != nil {
		return nil, err
	}
	key, ok := stored[keyModelKey]
	if !ok || tokenOrigin(key) == originOf(rawURL) {
		return nil, nil
	}
	if err := s.c.Settings.DeleteSetting(ctx, by.Workspace, keyModelKey, s.removed(by, keyModelKey)); err != nil {
		return nil, err
	}
	return []string{fmt.Sprintf("%s was removed, because it was saved for %s: set it again for %s", keyModelKey, tokenOrigin(key), originOf(rawURL))}, nil
}

// putModelKey seals the key and ties it to the origin of the URL that holds.
func (s *Service) putModelKey(ctx context.Context, by flow.Caller, r rule, row flow.Setting) (*SettingView, error) {
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
	row.Meta = tokenMeta(originOf(modelURL(stored)))
	defer s.forget(row.Workspace)
	if err := s.c.Settings.PutSetting(ctx, row, r.did(by, row)); err != nil {
		return nil, err
	}
	v := r.view(map[string]flow.Setting{row.Key: row})
	v.EndpointOrigin = originOf(modelURL(stored))
	return &v, nil
}

// modelURL is the URL that holds.
func modelURL(stored map[string]flow.Setting) string {
	if row, ok := stored[keyModelURL]; ok {
		return row.Value
	}
	return defaultModelURL
}

// originOf gives scheme, host and port of a checked URL.
func originOf(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Scheme + "://" + u.Host)
}

// unready says what the model still needs, for whoever chooses it.
func unready(stored map[string]flow.Setting) []string {
	_, has := stored[keyModelKey]
	if origin := originOf(modelURL(stored)); !has && origin == originOf(defaultModelURL) {
		return []string{"model.key is not set, and " + origin + " asks for one: until it is, the built-in rules answer"}
	}
	return nil
}

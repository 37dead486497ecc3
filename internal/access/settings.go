package access

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// SettingIn names a setting.
type SettingIn struct {
	Key string `path:"key"`
}

// PutSettingIn sets a setting.
type PutSettingIn struct {
	Key  string `path:"key"`
	Body struct {
		Value json.RawMessage `json:"value" doc:"The value, as a string or as its own type; an empty one removes the setting."`
	}
}

// SettingView is a setting as it is shown. Value is absent where it is
// write-only; Set tells then whether there is one.
type SettingView struct {
	Key            string     `json:"key"`
	Value          *string    `json:"value,omitempty"`
	Set            *bool      `json:"set,omitempty"`
	Source         string     `json:"source" enum:"default,workspace,workflow,step" doc:"Where the value comes from."`
	About          string     `json:"about,omitempty"`
	Expects        string     `json:"expects,omitempty" doc:"What a right value is."`
	UpdatedAt      *time.Time `json:"updatedAt,omitempty"`
	Name           string     `json:"name,omitempty" doc:"Of the agent, as its card says."`
	Description    string     `json:"description,omitempty"`
	URLOrigin      string     `json:"urlOrigin,omitempty" doc:"Where the card is read."`
	EndpointOrigin string     `json:"endpointOrigin,omitempty" doc:"Where calls go, and the only place the token is sent to."`
	Warnings       []string   `json:"warnings,omitempty"`
}

// SettingsList lists every setting, by key: of the workspace, or as they hold
// for a workflow or a step. It answers not_found for one that is not there.
func (s *Service) SettingsList(ctx context.Context, by flow.Caller, in *SettingsIn) (*List[SettingView], error) {
	layers, err := s.layers(ctx, by.Workspace, *in)
	if err != nil {
		return nil, err
	}
	stored, err := s.stored(ctx, by.Workspace)
	if err != nil {
		return nil, err
	}
	out := &List[SettingView]{}
	for _, key := range slices.Sorted(maps.Keys(s.rules)) {
		out.Items = append(out.Items, s.rules[key].over(s.rules[key].view(stored), layers))
	}
	return out, nil
}

// SettingsGet gives one setting, as SettingsList would; not_found for a key
// that is none.
func (s *Service) SettingsGet(ctx context.Context, by flow.Caller, in *GetSettingIn) (*SettingView, error) {
	r, ok := s.rules[in.Key]
	if !ok {
		return nil, s.unknown(in.Key, false)
	}
	layers, err := s.layers(ctx, by.Workspace, in.SettingsIn)
	if err != nil {
		return nil, err
	}
	stored, err := s.stored(ctx, by.Workspace)
	if err != nil {
		return nil, err
	}
	v := r.over(r.view(stored), layers)
	return &v, nil
}

// SettingsPut sets a setting, or removes it if the value is empty. It answers
// not_found for a key that is none, and invalid for a wrong value, which is
// never bent into a right one.
func (s *Service) SettingsPut(ctx context.Context, by flow.Caller, in *PutSettingIn) (*SettingView, error) {
	r, ok := s.rules[in.Key]
	if !ok {
		return nil, s.unknown(in.Key, true)
	}
	value, err := textOf(r, in.Body.Value)
	if err != nil {
		return nil, err
	}
	if value == "" {
		return s.removeSetting(ctx, by, r)
	}
	if why := r.check(value); why != "" {
		return nil, r.wrong(value, why)
	}
	row := flow.Setting{Workspace: by.Workspace, Key: r.key, Value: value, UpdatedBy: by.Person, UpdatedAt: s.c.Clock.Now()}
	switch r.key {
	case keyAgentURL:
		return s.putAgentURL(ctx, by, r, row)
	case keyAgentToken:
		return s.putAgentToken(ctx, by, r, row)
	case keyModelURL:
		return s.putModelURL(ctx, by, r, row)
	case keyModelKey:
		return s.putModelKey(ctx, by, r, row)
	case keyNotifyURL:
		return s.putNotifyURL(ctx, by, r, row)
	case keyNotifySecret:
		return s.putNotifySecret(ctx, by, r, row)
	}
	return s.putSetting(ctx, by, r, row)
}

// SettingsDelete puts a setting back to its default.
func (s *Service) SettingsDelete(ctx context.Context, by flow.Caller, in *SettingIn) (*SettingView, error) {
	r, ok := s.rules[in.Key]
	if !ok {
		return nil, s.unknown(in.Key, false)
	}
	return s.removeSetting(ctx, by, r)
}

func (s *Service) removeSetting(ctx context.Context, by flow.Caller, r rule) (*SettingView, error) {
	if r.key == keyModelURL {
		return s.removeModelURL(ctx, by, r)
	}
	defer s.forget(by.Workspace)
	if err := s.c.Settings.DeleteSetting(ctx, by.Workspace, r.key, s.removed(by, r.key)); err != nil {
		return nil, err
	}
	v := r.view(nil)
	return &v, nil
}

// removed is the audit row of a setting that goes back to its default.
func (s *Service) removed(by flow.Caller, key string) flow.Audit {
	return by.Did("settings.delete", "setting/"+key, s.c.Clock.Now(), nil)
}

// did is the audit row of a setting. A URL is told without what may be a key
// in it.
func (r rule) did(by flow.Caller, row flow.Setting) flow.Audit {
	details := map[string]any{"value": row.Value}
	switch {
	case r.writeOnly:
		details = nil
	case strings.HasSuffix(r.key, "url"):
		details["value"] = bareURL(row.Value)
	}
	return by.Did("settings.put", "setting/"+row.Key, row.UpdatedAt, details)
}

// bareURL is a URL without query and user.
func bareURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// putSetting stores a checked row.
func (s *Service) putSetting(ctx context.Context, by flow.Caller, r rule, row flow.Setting) (*SettingView, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if r.key == keyMCPServer {
		servers, err := s.c.Servers.MCPServers(ctx, row.Workspace)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(servers, func(m flow.MCPServer) bool { return m.ID == row.Value }) {
			return nil, r.wrong(row.Value, "is not registered in this workspace").Right(registered(servers))
		}
	}
	defer s.forget(row.Workspace)
	if err := s.c.Settings.PutSetting(ctx, row, r.did(by, row)); err != nil {
		return nil, err
	}
	v := r.view(map[string]flow.Setting{row.Key: row})
	if r.key == keyBuiltin && row.Value == "model" {
		stored, err := s.stored(ctx, row.Workspace)
		if err != nil {
			return nil, err
		}
		v.Warnings = unready(stored)
	}
	return &v, nil
}

func registered(servers []flow.MCPServer) string {
	if len(servers) == 0 {
		return "register it first: PUT /v1/mcp-servers/{id}"
	}
	var ids []string
	for _, m := range servers[:min(len(servers), 20)] {
		ids = append(ids, m.ID)
	}
	return "one of " + strings.Join(ids, ", ") + ", or register it first"
}

// stored reads the workspace's own settings.
func (s *Service) stored(ctx context.Context, workspace string) (map[string]flow.Setting, error) {
	rows, err := s.c.Settings.Settings(ctx, workspace)
	if err != nil {
		return nil, err
	}
	out := map[string]flow.Setting{}
	for _, row := range rows {
		out[row.Key] = row
	}
	return out, nil
}

// view shows the setting as it is stored, or its default.
func (r rule) view(stored map[string]flow.Setting) SettingView {
	row, set := stored[r.key]
	v := SettingView{Key: r.key, Source: "default", About: r.about, Expects: r.fix}
	if set {
		v.Source, v.UpdatedAt = "workspace", &row.UpdatedAt
	}
	if r.writeOnly {
		v.Set = &set
		return v
	}
	v.Value = &r.def
	if set {
		v.Value = &row.Value
	}
	if info := cardInfo(row); r.key == keyAgentURL && set {
		v.Name, v.Description, v.URLOrigin, v.EndpointOrigin = info.Name, info.Description, info.URLOrigin, info.EndpointOrigin
	}
	return v
}

// unknown is the answer for a key that this version does not serve: one that
// it knows of is a wrong request to put, not an unknown thing.
func (s *Service) unknown(key string, put bool) error {
	known := strings.Join(slices.Sorted(maps.Keys(s.rules)), ", ")
	if slices.Contains(later(), key) {
		code := flow.CodeNotFound
		if put {
			code = flow.CodeInvalid
		}
		return flow.Errorf(code, "%s is not served by this version yet", key).At(key).Right("it serves " + known)
	}
	return flow.Errorf(flow.CodeNotFound, "there is no setting %q", clip(key)).Right("one of " + known)
}

// textOf reads a value that came as a string or as its own type.
func textOf(r rule, raw json.RawMessage) (string, error) {
	raw = bytes.TrimSpace(raw)
	wrong := flow.Errorf(flow.CodeInvalid, "the value must be a string or a number").At("value").Right(r.fix)
	if len(raw) == 0 {
		return "", flow.Errorf(flow.CodeInvalid, "there is no value").At("value").Right(`send {"value": ...}; an empty string removes the setting`)
	}
	switch raw[0] {
	case '"':
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return "", wrong
		}
		return strings.TrimSpace(text), nil
	case '[':
		var list []string
		if err := json.Unmarshal(raw, &list); err != nil || r.key != "recovery.allowed_hosts" {
			return "", wrong
		}
		return strings.Join(list, ","), nil
	case '{':
		if r.key != keyCardKeys {
			return "", wrong
		}
	case 't', 'f':
		return "", wrong
	case 'n':
		return "", nil
	}
	return string(raw), nil
}

package access

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/secret"
)

// space is what holds in a workspace, opened and ready: in memory only, and
// immutable.
type space struct {
	settings map[string]flow.Setting
	token    string // of the workspace's A2A agent
	modelKey string // of the built-in model

	notices      flow.NoticeTarget
	notifySecret string            // as it was set
	values       map[string]string // secrets in the clear, by name
	servers      map[string]server
	masker       *secret.Masker
	base         holds            // the workspace's settings over the defaults
	baseErrs     map[string]error // by the first part of the key: a stored value is not right, and only what needs it suffers
	damaged      map[string]error // what is sealed and cannot be opened, by the name that it was sealed under
}

type server struct {
	flow.MCPServer
	headers map[string]string
	err     error // they cannot be opened
}

// readSpace reads and opens everything of a workspace. What is damaged is
// left out: nothing can send it, and all the rest works. It answers unavailable
// if nothing at all opens, since then it is the key that is wrong.
func (s *Service) readSpace(ctx context.Context, workspace string) (*space, error) {
	sp := &space{values: map[string]string{}, servers: map[string]server{}, damaged: map[string]error{}}
	var err error
	if sp.settings, err = s.stored(ctx, workspace); err != nil {
		return nil, err
	}
	secrets, err := s.c.Secrets.Secrets(ctx, workspace)
	if err != nil {
		return nil, err
	}
	servers, err := s.c.Servers.MCPServers(ctx, workspace)
	if err != nil {
		return nil, err
	}
	opened := 0
	note := func(name string, err error) bool {
		if err == nil {
			opened++
			return true
		}
		sp.damaged[name] = err
		return false
	}
	for _, v := range secrets {
		if plain, err := s.open(workspace, "secret/"+v.Name, v.Sealed); note("secret/"+v.Name, err) {
			sp.values[v.Name] = string(plain)
		}
	}
	for _, v := range servers {
		headers, err := s.openHeaders(v)
		if len(v.Sealed) > 0 {
			note("mcp-server/"+v.ID, err)
		}
		sp.servers[v.ID] = server{v, headers, err}
	}
	for key, to := range map[string]*string{keyAgentToken: &sp.token, keyModelKey: &sp.modelKey} {
		if row, ok := sp.settings[key]; ok {
			if plain, err := s.open(workspace, "setting/"+key, row.Sealed); note("setting/"+key, err) {
				*to = string(plain)
			}
		}
	}
	if _, ok := sp.settings[keyNotifySecret]; ok {
		note("setting/"+keyNotifySecret, s.openNotices(workspace, sp))
	} else {
		sp.notices.URL = sp.settings[keyNotifyURL].Value
	}
	for _, name := range slices.Sorted(maps.Keys(sp.damaged)) {
		if err := sp.damaged[name]; opened == 0 && (errors.Is(err, secret.ErrOtherKey) || errors.Is(err, secret.ErrVersion)) {
			return nil, err
		}
	}
	sp.masker = secret.NewMasker(sp.values, sp.hidden())
	sp.base, sp.baseErrs = s.base(sp)
	return sp, nil
}

// open opens what seal sealed.
func (s *Service) open(workspace, name string, sealed []byte) ([]byte, error) {
	plain, err := s.c.Keyring.Open(workspace, name, sealed)
	if err != nil {
		return nil, flow.Errorf(flow.CodeUnavailable, "%s cannot be read: %v", name, err).
			Right("start the server with the master key that it was stored with, or store it again").Because(err)
	}
	return plain, nil
}

// hidden gives the values that are masked but are nobody's to put back: the
// agent's token, the model's key and the headers of MCP servers. Headers that are no secret in
// any API stay readable, and of "Bearer xyz" only xyz is masked.
func (sp *space) hidden() map[string]string {
	out := map[string]string{}
	if sp.token != "" {
		out[keyAgentToken] = sp.token
	}
	if sp.modelKey != "" {
		out[keyModelKey] = sp.modelKey
	}
	if sp.notifySecret != "" {
		out[keyNotifySecret] = sp.notifySecret
	}
	scheme := regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{1,20} +(\S{8,})$`)
	open := []string{"accept", "accept-language", "content-type", "user-agent", "cache-control", "mcp-protocol-version"}
	for id, m := range sp.servers {
		for name, value := range m.headers {
			if slices.Contains(open, strings.ToLower(name)) {
				continue
			}
			if found := scheme.FindStringSubmatch(value); found != nil {
				value = found[1]
			}
			out["mcp-servers."+id+"."+name] = value
		}
	}
	return out
}

// Masker takes the workspace's secrets, its agent's token and its MCP servers'
// headers out of texts and JSON.
func (s *Service) Masker(ctx context.Context, workspace string) (*secret.Masker, error) {
	sp, err := s.space(ctx, workspace)
	if err != nil {
		return nil, err
	}
	return sp.masker, nil
}

// Values gives the workspace's secrets in the clear, by name, for the
// templates of a run. The caller must not change the map.
func (s *Service) Values(ctx context.Context, workspace string) (map[string]string, error) {
	sp, err := s.space(ctx, workspace)
	if err != nil {
		return nil, err
	}
	return sp.values, nil
}

func (s *Service) openHeaders(v flow.MCPServer) (map[string]string, error) {
	if len(v.Sealed) == 0 {
		return map[string]string{}, nil
	}
	plain, err := s.open(v.Workspace, "mcp-server/"+v.ID, v.Sealed)
	if err != nil {
		return nil, err
	}
	var headers map[string]string
	if err := json.Unmarshal(plain, &headers); err != nil {
		return nil, flow.Errorf(flow.CodeInternal, "the headers of MCP server %s cannot be read", v.ID).Right("set them again")
	}
	return headers, nil
}

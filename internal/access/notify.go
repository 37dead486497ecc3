package access

import (
	"context"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/notify"
)

// notifyRules are the settings of outgoing webhooks.
func notifyRules() []rule {
	return []rule{
		{key: keyNotifyURL, about: "where a signed webhook goes when a gate opens, a run fails, a reminder is due", fix: "an https URL that answers 2xx", own: true,
			check: checkAgentURL, set: func(*holds, string) {}},
		{key: keyNotifySecret, about: "the secret that signs it (Standard Webhooks)", fix: notify.SecretForm, own: true, writeOnly: true,
			check: func(v string) string {
				if _, err := notify.ParseSecret(v); err != nil {
					return "is not base64 of 24 to 64 bytes"
				}
				return ""
			}, set: func(*holds, string) {}},
	}
}

// putNotifyURL saves where notices go; the URL passes the egress guard.
func (s *Service) putNotifyURL(ctx context.Context, by flow.Caller, r rule, row flow.Setting) (*SettingView, error) {
	if err := s.c.Egress.CheckURL(ctx, row.Value); err != nil {
		return nil, refusedURL(r.key, "the URL may not be called", err)
	}
	v, err := s.putSetting(ctx, by, r, row)
	if err != nil {
		return nil, err
	}
	sp, err := s.space(ctx, row.Workspace)
	if err != nil {
		return nil, err
	}
	if !sp.notices.Ready() {
		v.Warnings = append(v.Warnings, "nothing is sent until "+keyNotifySecret+" is set")
	}
	return v, nil
}

// putNotifySecret seals the secret.
func (s *Service) putNotifySecret(ctx context.Context, by flow.Caller, r rule, row flow.Setting) (*SettingView, error) {
	sealed, err := s.seal(row.Workspace, "setting/"+row.Key, []byte(row.Value))
	if err != nil {
		return nil, err
	}
	row.Value, row.Sealed = "", sealed
	return s.putSetting(ctx, by, r, row)
}

// openNotices opens what notices need.
func (s *Service) openNotices(workspace string, sp *space) error {
	sp.notices.URL = sp.settings[keyNotifyURL].Value
	row, ok := sp.settings[keyNotifySecret]
	if !ok {
		return nil
	}
	plain, err := s.open(workspace, "setting/"+keyNotifySecret, row.Sealed)
	if err != nil {
		return err
	}
	sp.notifySecret = string(plain)
	sp.notices.Secret, err = notify.ParseSecret(sp.notifySecret)
	return err
}

// NoticeTarget says where a workspace's notices go, and the key that signs
// them. The caller must not change it.
func (s *Service) NoticeTarget(ctx context.Context, workspace string) (flow.NoticeTarget, error) {
	sp, err := s.space(ctx, workspace)
	if err != nil {
		return flow.NoticeTarget{}, err
	}
	return sp.notices, nil
}

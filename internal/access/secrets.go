package access

import (
	"context"
	"regexp"
	"time"
	"unicode/utf8"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/secret"
)

// maxSecret is the greatest length of a secret in bytes.
const maxSecret = 64 << 10

// SecretView is a secret as it is shown: never its value.
type SecretView struct {
	Name      string    `json:"name"`
	UpdatedAt time.Time `json:"updatedAt"`
	Problem   string    `json:"problem,omitempty" doc:"Why its value cannot be used."`
}

// SecretIn names a secret.
type SecretIn struct {
	Name string `path:"name"`
}

// PutSecretIn stores a secret.
type PutSecretIn struct {
	Name string `path:"name"`
	Body struct {
		Value string `json:"value" doc:"8 bytes to 64 KiB of UTF-8 text; never shown again."`
	}
}

// SecretsList lists the names of the secrets.
func (s *Service) SecretsList(ctx context.Context, by flow.Caller, _ *None) (*List[SecretView], error) {
	rows, err := s.c.Secrets.Secrets(ctx, by.Workspace)
	if err != nil {
		return nil, err
	}
	out := &List[SecretView]{Items: []SecretView{}}
	for _, v := range rows {
		view := SecretView{Name: v.Name, UpdatedAt: v.UpdatedAt}
		if _, err := s.open(by.Workspace, "secret/"+v.Name, v.Sealed); err != nil {
			view.Problem = "its value cannot be read: store it again"
		}
		out.Items = append(out.Items, view)
	}
	return out, nil
}

// SecretsPut stores a secret or replaces it. It answers invalid for a name or
// a value that cannot be; no error repeats the value.
func (s *Service) SecretsPut(ctx context.Context, by flow.Caller, in *PutSecretIn) (*SecretView, error) {
	if !regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`).MatchString(in.Name) {
		return nil, flow.Errorf(flow.CodeInvalid, "%q cannot be a secret's name", clip(in.Name)).At("name").
			Right("letters, digits and underscores, no digit first, 64 at most")
	}
	value := in.Body.Value
	switch {
	case len(value) < secret.MinLength:
		return nil, flow.Errorf(flow.CodeInvalid, "the value is shorter than %d bytes and could not be masked in logs", secret.MinLength).
			At("value").Right("a longer value")
	case len(value) > maxSecret:
		return nil, flow.Errorf(flow.CodeTooLarge, "the value has more than %d bytes", maxSecret).At("value").Right("a shorter value")
	case !utf8.ValidString(value):
		return nil, flow.Errorf(flow.CodeInvalid, "the value is not UTF-8 text").At("value").Right("encode binary data, as base64 for example")
	}
	sealed, err := s.seal(by.Workspace, "secret/"+in.Name, []byte(value))
	if err != nil {
		return nil, err
	}
	row := flow.Secret{Workspace: by.Workspace, Name: in.Name, Sealed: sealed, UpdatedBy: by.Person, UpdatedAt: s.c.Clock.Now()}
	defer s.forget(by.Workspace)
	if err := s.c.Secrets.PutSecret(ctx, row, by.Did("secrets.put", "secret/"+row.Name, row.UpdatedAt, nil)); err != nil {
		return nil, err
	}
	return &SecretView{Name: row.Name, UpdatedAt: row.UpdatedAt}, nil
}

// SecretsDelete removes a secret; not_found if there is none. From then on its
// value is no longer masked where it turns up.
func (s *Service) SecretsDelete(ctx context.Context, by flow.Caller, in *SecretIn) (*None, error) {
	defer s.forget(by.Workspace)
	if err := s.c.Secrets.DeleteSecret(ctx, by.Workspace, in.Name, by.Did("secrets.delete", "secret/"+in.Name, s.c.Clock.Now(), nil)); err != nil {
		return nil, err
	}
	return &None{}, nil
}

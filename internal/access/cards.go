package access

import (
	"context"

	"github.com/longstop-dev/longstop/internal/a2a"
)

// cardRules are the settings of agent cards' signatures.
func cardRules() []rule {
	about := "whether cards of agents hosted elsewhere must be signed: off, if-present (a signed one must be signed with a pinned key), require"
	policy := oneOf("agents.card_signatures", about, []string{string(a2a.SignaturesOff), string(a2a.SignaturesIfPresent), string(a2a.SignaturesRequire)}, nil,
		func(h *holds, v string) { h.cards.Signatures = a2a.Signatures(v) })
	policy.own = true
	return []rule{policy, {key: keyCardKeys, about: "the keys with which cards may be signed, pinned", own: true,
		fix: `a JSON Web Key Set of public keys, {"keys": [{"kid": "...", ...}]}, for ES256, RS256 or EdDSA`,
		check: func(v string) string {
			if len(v) > 64<<10 {
				return "is too long"
			}
			if _, err := a2a.ParseCardKeys(v); err != nil {
				return "is no set of keys: " + err.Error()
			}
			return ""
		},
		set: func(h *holds, v string) { h.cards.Keys, _ = a2a.ParseCardKeys(v) }, // checked
	}}
}

// Cards is what agents' cards have to satisfy in a workspace.
func (s *Service) Cards(ctx context.Context, workspace string) (a2a.CardPolicy, error) {
	sp, err := s.space(ctx, workspace)
	if err != nil {
		return a2a.CardPolicy{}, err
	}
	return sp.base.cards, sp.baseErrs["agents"]
}

package phrase

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/flow"
)

// The seed and the root key are SLIP-0010's own test vector 1 for ed25519, the
// phrase is BIP-39's of all zeros.
func TestDerivation(t *testing.T) {
	t.Parallel()
	seed, err := hex.DecodeString("000102030405060708090a0b0c0d0e0f")
	if err != nil {
		t.Fatal(err)
	}
	key, chain := split([]byte("ed25519 seed"), seed)
	if hex.EncodeToString(key) != "2b4be7f19ee27bbf30c667b642d5f4aa69fd169872f8fc3059c08ebae2eb19e7" ||
		hex.EncodeToString(chain) != "90046a93de5380a72b5e45010748567d5ea02bbf6522f979e05c0d8d8ca9fffb" {
		t.Errorf("root: %x %x", key, chain)
	}
	// One hardened step, m/0', of the same vector.
	key, chain = split(chain, append(append([]byte{0}, key...), 0x80, 0, 0, 0))
	if hex.EncodeToString(key) != "68e0fe46dfb67e368c75379acec591dad19df3cde26e63b93a8e704f1dade7a3" ||
		hex.EncodeToString(chain) != "8b59aa11380b624e81507a27fedda59fea6d0b779a778918a2fd3590e16e9c69" {
		t.Errorf("m/0': %x %x", key, chain)
	}
}

func TestKeyOfAPhrase(t *testing.T) {
	t.Parallel()
	words := strings.Repeat("abandon ", 11) + "about"
	one, err := Key(words)
	if err != nil {
		t.Fatal(err)
	}
	two, err := Key("  " + strings.ReplaceAll(words, " ", "\n ") + " ")
	if err != nil || !one.Equal(two) {
		t.Errorf("white space matters: %v", err)
	}
	fresh, err := New()
	if err != nil || len(strings.Fields(fresh)) != 24 {
		t.Fatalf("new: %q, %v", fresh, err)
	}
	if other, err := Key(fresh); err != nil || other.Equal(one) {
		t.Errorf("a new phrase: %v", err)
	}
	for _, bad := range []string{"", "abandon", strings.Repeat("abandon ", 12), strings.Repeat("zebra7 ", 12)} {
		if _, err := Key(bad); flow.CodeOf(err) != flow.CodeInvalid || bad != "" && strings.Contains(err.Error(), strings.Fields(bad)[0]) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

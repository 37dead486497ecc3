// Package phrase makes Ed25519 keys of phrases: BIP-39 words, and below their
// seed the key that SLIP-0010 derives at one path. People and Agent Services
// can carry their key as words that way.
package phrase

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha512"
	"encoding/binary"
	"strings"

	"github.com/tyler-smith/go-bip39"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Path is where keys are derived, every step of it hardened.
const Path = "m/44'/0'/0'"

// New makes a phrase of 24 words.
func New() (string, error) {
	entropy, err := bip39.NewEntropy(256)
	if err != nil {
		return "", flow.Errorf(flow.CodeInternal, "no phrase can be made").Because(err)
	}
	return bip39.NewMnemonic(entropy)
}

// Key derives the key of a phrase. It answers invalid for words that are no
// BIP-39 phrase; the words are not in the error.
func Key(words string) (ed25519.PrivateKey, error) {
	words = strings.Join(strings.Fields(words), " ")
	seed, err := bip39.NewSeedWithErrorChecking(words, "")
	if err != nil {
		return nil, flow.Errorf(flow.CodeInvalid, "the phrase is not a BIP-39 phrase").Right("12, 15, 18, 21 or 24 words of the English list, whose last one checks the others")
	}
	return ed25519.NewKeyFromSeed(derive(seed)), nil
}

// derive walks the path by SLIP-0010 for ed25519.
func derive(seed []byte) []byte {
	const hardened = uint32(1) << 31
	key, chain := split([]byte("ed25519 seed"), seed)
	for _, index := range []uint32{44 | hardened, hardened, hardened} {
		data := append([]byte{0}, key...)
		key, chain = split(chain, binary.BigEndian.AppendUint32(data, index))
	}
	return key
}

// split is the HMAC of data in two halves: a key and a chain code.
func split(mac, data []byte) (key, chain []byte) {
	h := hmac.New(sha512.New, mac)
	h.Write(data)
	sum := h.Sum(nil)
	return sum[:32], sum[32:]
}

package access

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"math/big"
	"strings"

	"github.com/longstop-dev/longstop/internal/flow"
)

// A key is longstop_<random>_<check>: 256 random bits and a CRC-32 of all that
// is before the second underscore, both in base 62. The check lets a mistyped
// key be refused, and a leaked one be found, without a look at the database.
const (
	keyPrefix  = "longstop_"
	randomSize = 43 // digits of 256 bits in base 62
	checkSize  = 6
	shownSize  = len(keyPrefix) + 6 // what is kept of a key to recognise it by

	// minOwnKey is the least length of a key that an operator chooses.
	minOwnKey = 32
	maxOwnKey = 256
)

type keyHash [sha256.Size]byte

func newKey() (string, error) {
	random := make([]byte, 32)
	if _, err := rand.Read(random); err != nil {
		return "", flow.Errorf(flow.CodeInternal, "no randomness").Because(err)
	}
	body := keyPrefix + base62(new(big.Int).SetBytes(random), randomSize)
	return body + "_" + keyCheck(body), nil
}

func keyCheck(body string) string {
	return base62(big.NewInt(int64(crc32.ChecksumIEEE([]byte(body)))), checkSize)
}

func base62(n *big.Int, digits int) string {
	text := n.Text(62)
	return strings.Repeat("0", digits-len(text)) + text
}

// checkKey says whether a text can be a key: one of ours whose check is right,
// or one that an operator may have chosen.
func checkKey(key string) error {
	if strings.HasPrefix(key, keyPrefix) {
		body, check, ok := strings.Cut(key[len(keyPrefix):], "_")
		if !ok || len(body) != randomSize || check != keyCheck(keyPrefix+body) {
			return fmt.Errorf("it is mistyped or cut off")
		}
		return nil
	}
	if len(key) < minOwnKey || len(key) > maxOwnKey {
		return fmt.Errorf("it has %d characters, and a key has %d to %d", len(key), minOwnKey, maxOwnKey)
	}
	for _, r := range key {
		if r <= ' ' || r > '~' {
			return fmt.Errorf("it holds something else than printable ASCII without spaces")
		}
	}
	return nil
}

func hashKey(key string) keyHash { return sha256.Sum256([]byte(key)) }

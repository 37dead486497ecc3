package store

import (
	"encoding/base64"
)

// Bytes are stored as base64 text, which both engines keep alike; none is "".

func encodeBytes(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

// decodeBytes gives for a text that is no base64 something that no key opens:
// one damaged row must not take along what is read with it, nor pass for one
// that has nothing.
func decodeBytes(text string) []byte {
	if text == "" {
		return nil
	}
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return []byte{0}
	}
	return b
}

package store

import (
	"encoding/base64"
)

// Bytes are stored as base64 text, which both engines keep alike; none is "".

func encodeBytes(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

func decodeBytes(text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	return base64.StdEncoding.DecodeString(text)
}

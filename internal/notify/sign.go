package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// The bounds of a key, in bytes.
const (
	minKey = 24
	maxKey = 64
)

// ParseSecret gives the key of a secret as Standard Webhooks write it: base64,
// with or without whsec_ before it. It answers invalid; the error does not
// hold the secret.
func ParseSecret(text string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, "whsec_"))
	if err != nil || len(key) < minKey || len(key) > maxKey {
		return nil, flow.Errorf(flow.CodeInvalid, "the secret is not base64 of %d to %d bytes", minKey, maxKey).Right(SecretForm)
	}
	return key, nil
}

// SecretForm says what a right secret is.
const SecretForm = "whsec_ and the base64 of 24 to 64 bytes, such as `echo whsec_$(openssl rand -base64 32)` prints"

// Signature signs a message's raw bytes as it is sent at an instant.
func Signature(key []byte, id string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// sign sets the headers of a message.
func sign(h http.Header, key []byte, id string, at time.Time, body []byte) {
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", strconv.FormatInt(at.Unix(), 10))
	h.Set("Webhook-Signature", Signature(key, id, at, body))
}

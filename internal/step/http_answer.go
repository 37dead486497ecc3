package step

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"

	"github.com/longstop-dev/longstop/internal/flow"
)

const (
	maxResponseBody = 64 << 10       // of a failure's body, kept for recovery
	maxHeaderValue  = 2 << 10        // of a failure's header, kept for recovery
	maxRetryAfter   = 24 * time.Hour // that an outsider may ask for
)

// hasBody reports whether an answer may have a body: the rest say so by
// method or status, and a 101 leaves a connection that never ends.
func hasBody(req *http.Request, resp *http.Response) bool {
	s := resp.StatusCode
	return req.Method != http.MethodHead && s >= 200 && s != http.StatusNoContent && s != http.StatusResetContent && s != http.StatusNotModified
}

// decoded undoes the content encodings that a server may use unasked; what
// was asked for, the client has undone already.
func decoded(resp *http.Response) (io.Reader, error) {
	switch strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding"))) {
	case "", "identity":
		return resp.Body, nil
	case "gzip", "x-gzip":
		return gzip.NewReader(resp.Body)
	case "deflate":
		return zlib.NewReader(resp.Body)
	}
	return nil, errEncoding
}

// read gives the whole body as text, or says why it cannot be had.
func (x exchange) read(ctx context.Context, req *http.Request, resp *http.Response) (string, *flow.StepError) {
	if !hasBody(req, resp) {
		return "", nil
	}
	r, err := decoded(resp)
	if errors.Is(err, io.EOF) {
		return "", nil // an encoding of nothing
	}
	var raw []byte
	if err == nil {
		if x.limit > 0 {
			r = io.LimitReader(r, x.limit+1)
		}
		raw, err = io.ReadAll(r)
	}
	switch {
	case err == nil && x.limit > 0 && int64(len(raw)) > x.limit:
		return "", tooLarge("the answer's body", x.limit)
	case err == nil:
		return toText(raw, resp.Header.Get("Content-Type")), nil
	case ctx.Err() != nil:
		return "", stopped(ctx, x.budget, "the answer had not ended after "+size(int64(len(raw))))
	}
	return "", because(failf(bodyKind(err), "the answer could not be read to its end: %s", excerpt(err.Error(), 200)), err)
}

// errEncoding is of an answer in an encoding that nobody asked for.
var errEncoding = errors.New("its content encoding is neither gzip nor deflate")

// bodyKind sorts what goes wrong while a body is read: a broken connection
// may hold next time, a broken encoding will not.
func bodyKind(err error) flow.ErrorKind {
	var corrupt flate.CorruptInputError
	for _, broken := range []error{errEncoding, gzip.ErrHeader, gzip.ErrChecksum, zlib.ErrHeader, zlib.ErrChecksum, zlib.ErrDictionary} {
		if errors.Is(err, broken) {
			return flow.KindRefused
		}
	}
	if errors.As(err, &corrupt) {
		return flow.KindRefused
	}
	return flow.KindTransient
}

// toText decodes the charset that a content type declares. Bytes that are not
// text are replaced, a byte order mark is dropped.
func toText(raw []byte, contentType string) string {
	_, params, _ := mime.ParseMediaType(contentType)
	if decoder := decoderOf(params["charset"]); decoder != nil {
		if plain, err := decoder.Bytes(raw); err == nil {
			raw = plain
		}
	}
	raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
	return string(bytes.ToValidUTF8(raw, []byte("\uFFFD")))
}

// decoderOf gives the decoder of a charset, nil for UTF-8 and for names that
// nobody knows. Plain UTF-16 says its byte order in the text.
func decoderOf(label string) *encoding.Decoder {
	if strings.EqualFold(label, "utf-16") {
		return unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder()
	}
	e, name := charset.Lookup(label)
	if e == nil || name == "utf-8" {
		return nil
	}
	return e.NewDecoder()
}

// toValue makes the output of a body: JSON where the content type says so, or
// says nothing and the body is JSON, or says text and the body is an object or
// a list (servers that set no type send that); else its text. No body is null.
func toValue(body, contentType string) (json.RawMessage, *flow.StepError) {
	if strings.TrimSpace(body) == "" && (body == "" || isJSON(mediaType(contentType))) {
		return json.RawMessage("null"), nil
	}
	media := mediaType(contentType)
	if media != "" && !isJSON(media) && !(media == "text/plain" && composite(body)) {
		return text(body), nil
	}
	var b bytes.Buffer
	err := json.Compact(&b, []byte(body))
	switch {
	case err == nil:
		return b.Bytes(), nil
	case !isJSON(media):
		return text(body), nil
	}
	return nil, because(failf(flow.KindContract, "the answer says that it is %s and is not valid JSON: %s", media, excerpt(body, 200)), err)
}

// composite reports whether a body looks like an object or a list.
func composite(body string) bool {
	body = strings.TrimSpace(body)
	return strings.HasPrefix(body, "{") || strings.HasPrefix(body, "[")
}

// mediaType is a content type without its parameters, in lower case; broken
// parameters do not matter.
func mediaType(contentType string) string {
	media, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(media))
}

func isJSON(media string) bool {
	return media == "application/json" || media == "text/json" || strings.HasSuffix(media, "+json")
}

// statusLine is how a failure of HTTP begins, in every face.
func statusLine(status int) string {
	name := http.StatusText(status)
	if name == "" {
		name = "Unknown Status"
	}
	return "HTTP " + strconv.Itoa(status) + ": " + name
}

func statusKind(status int) flow.ErrorKind {
	switch {
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests, status >= 500 && status <= 599:
		return flow.KindTransient
	}
	return flow.KindRefused
}

// retryAfter reads the header in both of its forms: seconds and a date.
func retryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0
	}
	var d time.Duration
	if seconds, err := strconv.ParseFloat(value, 64); err == nil && value[0] >= '0' && value[0] <= '9' {
		d = time.Duration(min(max(seconds, 0), maxRetryAfter.Seconds()) * float64(time.Second))
	} else if at, err := http.ParseTime(value); err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), maxRetryAfter)
}

// answered keeps of an answer what recovery reads.
func answered(req *http.Request, resp *http.Response, body string) *flow.Response {
	out := &flow.Response{Status: resp.StatusCode, Header: map[string]string{}, Body: firstBytes(body, maxResponseBody)}
	for _, name := range []string{"Content-Type", "Retry-After", "Location", "Link", "Www-Authenticate", "Allow", "Accept", "Accept-Post", "Deprecation", "Sunset"} {
		if value := resp.Header.Get(name); value != "" {
			out.Header[name] = firstBytes(strings.ToValidUTF8(value, "\uFFFD"), maxHeaderValue)
		}
	}
	if to := location(req, resp); to != nil {
		out.Header["Location"] = firstBytes(to.String(), maxHeaderValue)
	}
	return out
}

// transportKind sorts the errors of a request that got no answer, and says
// them in words for people.
func transportKind(err error) (flow.ErrorKind, string) {
	why := excerpt(err.Error(), 300)
	var (
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
		alert       tls.AlertError
		unknown     x509.UnknownAuthorityError
		name        *net.DNSError
		network     net.Error
	)
	switch {
	case guardRefused(err):
		return flow.KindEgress, why
	case errors.As(err, &certificate), errors.As(err, &unknown):
		return flow.KindRefused, "its certificate is not valid: " + why
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record):
		return flow.KindRefused, "it does not speak TLS on this port"
	case errors.As(err, &alert):
		return flow.KindRefused, "the TLS handshake failed: " + why
	case strings.HasPrefix(why, "failed to parse Location header"):
		return flow.KindRefused, "it redirects to something that is not a URL"
	case errors.As(err, &name) && name.IsNotFound:
		return flow.KindTransient, "there is no such host"
	case errors.As(err, &network) && network.Timeout():
		return flow.KindTimeout, why
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return flow.KindTransient, "the connection was closed before an answer came"
	}
	return flow.KindTransient, why
}

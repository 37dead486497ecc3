// Package bucket keeps manifests: small files under keys, in a folder of this
// machine or in an S3-compatible store.
package bucket

import (
	"context"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Bounds of a bucket.
const (
	MaxObject = 1 << 20 // bytes
	MaxKeys   = 100_000 // of a list
	maxKey    = 512     // bytes
)

// Bucket keeps objects of at most [MaxObject] bytes under keys such as
// agents/helper/1.0.0/manifest.json. It is safe for concurrent use. Errors are
// invalid for a key that is none, not_found, too_large, and unavailable with
// what the store said.
type Bucket interface {
	// Put writes an object whole or not at all, in the place of one that is there.
	Put(ctx context.Context, key string, body []byte) error
	Get(ctx context.Context, key string) ([]byte, error)
	// Delete removes an object; one that is not there is no error.
	Delete(ctx context.Context, key string) error
	// List gives the keys below a prefix that ends in a slash, sorted; too_large
	// if there are more than [MaxKeys].
	List(ctx context.Context, prefix string) ([]string, error)
}

// Options say what a bucket may use.
type Options struct {
	Dir   string              // where the folder of a bucket without a path of its own is: DIR/<id>
	Roots []string            // folders below which a file:// URL may point; none without
	HTTP  *http.Client        // of S3: goes through the egress guard
	Env   func(string) string // of the server: the credentials of S3 are there
	Clock flow.Clock
}

// Open opens the bucket with an id at a URL: file:// for a folder in the data
// folder, file:///DIR below an opened root, or s3://NAME/PREFIX with the
// parameters endpoint and region. It answers invalid with what would be
// right; it does not ask whether the bucket is there.
func Open(id, rawURL string, o Options) (Bucket, error) {
	u, err := url.Parse(rawURL)
	if err != nil || u.User != nil {
		return nil, badURL("it is no URL of a bucket")
	}
	switch u.Scheme {
	case "file":
		return openFile(id, u, o)
	case "s3":
		return openS3(u, o)
	}
	return nil, badURL("a bucket has a URL of file or s3")
}

func badURL(why string) *flow.Error {
	return flow.Errorf(flow.CodeInvalid, "%s", why).At("url").
		Right("file:// for a folder of the server's own, or s3://NAME/PREFIX?endpoint=https://HOST&region=REGION")
}

func openFile(id string, u *url.URL, o Options) (Bucket, error) {
	if u.Host != "" || u.RawQuery != "" {
		return nil, badURL("a folder of another machine cannot be a bucket")
	}
	if u.Path == "" {
		if o.Dir == "" {
			return nil, badURL("this server keeps no folder for buckets")
		}
		return folder{filepath.Join(o.Dir, id)}, nil
	}
	dir := filepath.Clean(filepath.FromSlash(u.Path))
	for _, root := range o.Roots {
		if rel, err := filepath.Rel(root, dir); err == nil && filepath.IsLocal(rel) {
			return folder{dir}, nil
		}
	}
	return nil, flow.Errorf(flow.CodeInvalid, "the server does not open the folder %s to buckets", dir).At("url").
		Right("file:// for a folder of the server's own; the operator opens others with --bucket-root")
}

// checkKey refuses what is no key: relative steps, empty parts and anything
// that some store would read as something else.
func checkKey(key string) error {
	ok := key != "" && len(key) <= maxKey
	for part := range strings.SplitSeq(key, "/") {
		ok = ok && part != "" && part != "." && part != ".."
	}
	for _, r := range key {
		alnum := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		ok = ok && (alnum || strings.ContainsRune("/._-+", r))
	}
	if !ok {
		return flow.Errorf(flow.CodeInvalid, "%q is no key of a bucket", key)
	}
	return nil
}

// listing gathers the keys below a prefix.
type listing struct {
	prefix string
	keys   []string
}

// add takes a key up; what is no key of ours, or elsewhere, is passed over.
func (l *listing) add(key string) error {
	if !strings.HasPrefix(key, l.prefix) || checkKey(key) != nil {
		return nil
	}
	if len(l.keys) == MaxKeys {
		return flow.Errorf(flow.CodeTooLarge, "the bucket holds more than %d objects below %s", MaxKeys, l.prefix).
			Right("remove what is not needed, or use a bucket of its own")
	}
	l.keys = append(l.keys, key)
	return nil
}

func tooLarge(key string) error {
	return flow.Errorf(flow.CodeTooLarge, "%s is larger than %d bytes", key, MaxObject)
}

func missing(key string) error {
	return flow.Errorf(flow.CodeNotFound, "there is no %s in the bucket", key)
}

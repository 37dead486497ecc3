package bucket

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/longstop-dev/longstop/internal/flow"
)

// The environment of the server that has the credentials of S3.
const (
	EnvAccessKey = "AWS_ACCESS_KEY_ID"
	EnvSecretKey = "AWS_SECRET_ACCESS_KEY"
	EnvToken     = "AWS_SESSION_TOKEN"
)

// s3 is a bucket in a store that speaks S3, with the path style that all of
// them know.
type s3 struct {
	endpoint string // https://HOST, without a path
	name     string
	prefix   string // "" or with a slash at its end
	region   string
	o        Options
}

func openS3(u *url.URL, o Options) (Bucket, error) {
	if !opened(u, o.Roots) {
		return nil, flow.Errorf(flow.CodeInvalid, "the server does not open s3://%s%s to buckets", u.Host, u.Path).At("url").
			Right("the operator opens a bucket, or a prefix in it, with --bucket-root s3://NAME/PREFIX")
	}
	q := u.Query()
	b := s3{name: u.Host, prefix: strings.Trim(u.Path, "/"), region: q.Get("region"), endpoint: q.Get("endpoint"), o: o}
	if b.region == "" {
		b.region = "us-east-1"
	}
	if b.endpoint == "" {
		b.endpoint = "https://s3." + b.region + ".amazonaws.com"
	}
	e, err := url.Parse(b.endpoint)
	if err != nil || e.Host == "" || e.User != nil || e.Scheme != "https" && e.Scheme != "http" || strings.Trim(e.Path, "/") != "" {
		return nil, badURL("endpoint is no URL of a host")
	}
	b.endpoint = e.Scheme + "://" + e.Host
	if b.name == "" || checkKey(b.name) != nil || b.prefix != "" && checkKey(b.prefix) != nil {
		return nil, badURL("it names no bucket")
	}
	if b.prefix != "" {
		b.prefix += "/"
	}
	return b, nil
}

// opened reports whether the operator opened the bucket, or a prefix above. An
// endpoint is part of what is opened: the credentials are used there.
func opened(u *url.URL, roots []string) bool {
	for _, root := range roots {
		r, err := url.Parse(root)
		if err != nil || r.Scheme != "s3" || r.Host != u.Host || r.Query().Encode() != u.Query().Encode() {
			continue
		}
		above := strings.Trim(r.Path, "/")
		if below := strings.Trim(u.Path, "/"); above == "" || below == above || strings.HasPrefix(below, above+"/") {
			return true
		}
	}
	return false
}

// Put writes an object.
func (b s3) Put(ctx context.Context, key string, body []byte) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if len(body) > MaxObject {
		return tooLarge(key)
	}
	_, err := b.call(ctx, http.MethodPut, b.prefix+key, nil, body)
	return err
}

// Get reads an object.
func (b s3) Get(ctx context.Context, key string) ([]byte, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	return b.call(ctx, http.MethodGet, b.prefix+key, nil, nil)
}

// Delete removes an object.
func (b s3) Delete(ctx context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	_, err := b.call(ctx, http.MethodDelete, b.prefix+key, nil, nil)
	return err
}

// maxPages bounds a list: a store fills its pages, with 1,000 keys each, mostly.
const maxPages = 2000

// page is an answer of ListObjectsV2.
type page struct {
	Contents []struct {
		Key string `xml:"Key"`
	} `xml:"Contents"`
	Truncated bool   `xml:"IsTruncated"`
	Next      string `xml:"NextContinuationToken"`
}

// List pages through the store.
func (b s3) List(ctx context.Context, prefix string) ([]string, error) {
	found := listing{prefix: prefix}
	next := ""
	for range maxPages {
		q := url.Values{"list-type": {"2"}, "prefix": {b.prefix + prefix}}
		if next != "" {
			q.Set("continuation-token", next)
		}
		raw, err := b.call(ctx, http.MethodGet, "", q, nil)
		if err != nil {
			return nil, err
		}
		var p page
		if err := xml.Unmarshal(raw, &p); err != nil {
			return nil, b.failed("its list cannot be read", err)
		}
		for _, c := range p.Contents {
			if err := found.add(strings.TrimPrefix(c.Key, b.prefix)); err != nil {
				return nil, err
			}
		}
		if !p.Truncated {
			return found.keys, nil
		}
		if p.Next == "" || p.Next == next {
			break
		}
		next = p.Next
	}
	return nil, b.failed("its list does not end", nil)
}

func (b s3) failed(why string, err error) error {
	return flow.Errorf(flow.CodeUnavailable, "the bucket %s at %s: %s", b.name, b.endpoint, why).Because(err)
}

// call makes one signed request and reads the answer within the bound.
func (b s3) call(ctx context.Context, method, key string, query url.Values, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	place := b.endpoint + "/" + b.name
	if key != "" {
		place += "/" + key
	}
	req, err := http.NewRequestWithContext(ctx, method, place, bytes.NewReader(body))
	if err != nil {
		return nil, b.failed("it cannot be asked", err)
	}
	if body == nil {
		req.Body = nil
	}
	// S3 signs a path with all but the unreserved characters encoded.
	req.URL.RawPath = strings.ReplaceAll(req.URL.EscapedPath(), "+", "%2B")
	req.URL.RawQuery = query.Encode()
	if err := b.sign(ctx, req, body); err != nil {
		return nil, err
	}
	resp, err := b.o.HTTP.Do(req)
	if err != nil {
		return nil, b.failed("it cannot be reached", err)
	}
	defer resp.Body.Close()
	most := int64(MaxObject)
	if key == "" {
		most = 4 << 20 // a page of a list
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	switch {
	case err != nil:
		return nil, b.failed("its answer was cut", err)
	case resp.StatusCode == http.StatusNotFound && key != "" && method == http.MethodGet:
		return nil, missing(strings.TrimPrefix(key, b.prefix))
	case resp.StatusCode == http.StatusNotFound && key != "" && method == http.MethodDelete:
		return nil, nil // some stores say that it was not there
	case resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusUnauthorized:
		return nil, b.failed(fmt.Sprintf("it refuses the credentials (HTTP %d)", resp.StatusCode), nil)
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return nil, b.failed(fmt.Sprintf("HTTP %d", resp.StatusCode), nil)
	case int64(len(answer)) > most:
		return nil, tooLarge(key)
	}
	return answer, nil
}

// sign signs a request with the server's credentials.
func (b s3) sign(ctx context.Context, req *http.Request, body []byte) error {
	c := aws.Credentials{AccessKeyID: b.o.Env(EnvAccessKey), SecretAccessKey: b.o.Env(EnvSecretKey), SessionToken: b.o.Env(EnvToken)}
	if c.AccessKeyID == "" || c.SecretAccessKey == "" {
		return flow.Errorf(flow.CodeUnavailable, "the server has no credentials for s3://%s", b.name).Right("set " + EnvAccessKey + " and " + EnvSecretKey + " for the server")
	}
	sum := sha256.Sum256(body)
	digest := hex.EncodeToString(sum[:])
	req.Header.Set("X-Amz-Content-Sha256", digest)
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	if err := signer.SignHTTP(ctx, c, req, digest, "s3", b.region, b.o.Clock.Now()); err != nil {
		return b.failed("the request cannot be signed", errors.New("signing failed"))
	}
	return nil
}

package bucket_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/longstop-dev/longstop/internal/bucket"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/nettest"
)

func env(name string) string {
	return map[string]string{bucket.EnvAccessKey: "access", bucket.EnvSecretKey: "planted-s3-secret"}[name]
}

// s3Server serves S3 and keeps what it was asked.
func s3Server(t *testing.T) (endpoint string, asked *[]*http.Request) {
	t.Helper()
	back := s3mem.New()
	if err := back.CreateBucket("manifests"); err != nil {
		t.Fatal(err)
	}
	h, seen := gofakes3.New(back).Server(), []*http.Request{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r)
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, &seen
}

// TestBuckets: a folder and a store that speaks S3 behave alike.
func TestBuckets(t *testing.T) {
	t.Parallel()
	endpoint, asked := s3Server(t)
	place := "s3://manifests/some/prefix?endpoint=" + endpoint
	o := bucket.Options{Dir: t.TempDir(), Roots: []string{"s3://manifests/some?endpoint=" + endpoint}, HTTP: nettest.Client(), Env: env, Clock: flow.SystemClock{}}
	for _, at := range []string{"file://", place} {
		b, err := bucket.Open("bkt_1", at, o)
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		if keys, err := b.List(ctx, ""); err != nil || len(keys) != 0 {
			t.Errorf("%s: empty: %v, %v", at, keys, err)
		}
		if _, err := b.Get(ctx, "agents/a/1.0.0/manifest.json"); flow.CodeOf(err) != flow.CodeNotFound {
			t.Errorf("%s: missing: %v", at, err)
		}
		for i, key := range []string{"agents/a/1.0.0/manifest.json", "agents/a/1.0.0/manifest.json", "agents/b/2.0.0+x/manifest.json", "other/c"} {
			if err := b.Put(ctx, key, fmt.Appendf(nil, "%d", i)); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := b.Get(ctx, "agents/a/1.0.0/manifest.json"); err != nil || string(got) != "1" {
			t.Errorf("%s: the second one counts: %q, %v", at, got, err)
		}
		keys, err := b.List(ctx, "agents/")
		if err != nil || strings.Join(keys, " ") != "agents/a/1.0.0/manifest.json agents/b/2.0.0+x/manifest.json" {
			t.Errorf("%s: list: %v, %v", at, keys, err)
		}
		for range 2 { // the second time it is gone already
			if err := b.Delete(ctx, "other/c"); err != nil {
				t.Errorf("%s: delete: %v", at, err)
			}
		}
		if _, err := b.Get(ctx, "other/c"); flow.CodeOf(err) != flow.CodeNotFound {
			t.Errorf("%s: deleted: %v", at, err)
		}
		if err := b.Put(ctx, "big", bytes.Repeat([]byte("x"), bucket.MaxObject+1)); flow.CodeOf(err) != flow.CodeTooLarge {
			t.Errorf("%s: too large: %v", at, err)
		}
		for _, bad := range []string{"", "/a", "a/", "a//b", "../a", "a/../b", "a/./b", "a b", "a\x00", "ä", strings.Repeat("a", 600)} {
			if err := b.Put(ctx, bad, nil); flow.CodeOf(err) != flow.CodeInvalid {
				t.Errorf("%s: key %q: %v", at, bad, err)
			}
		}
	}
	for _, r := range *asked {
		if a := r.Header.Get("Authorization"); !strings.HasPrefix(a, "AWS4-HMAC-SHA256 Credential=access/") || strings.Contains(a, "planted") {
			t.Errorf("%s %s: authorization %q", r.Method, r.URL, a)
		}
		if !strings.HasPrefix(r.URL.Path, "/manifests") {
			t.Errorf("asked for %s", r.URL)
		}
	}
}

// TestTwoWhoPutTheSameKey: one of them counts, whole.
func TestTwoWhoPutTheSameKey(t *testing.T) {
	t.Parallel()
	b, err := bucket.Open("bkt_1", "file://", bucket.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	one, two := bytes.Repeat([]byte("1"), 300_000), bytes.Repeat([]byte("2"), 200_000)
	for range 50 {
		var wg sync.WaitGroup
		for _, body := range [][]byte{one, two} {
			wg.Go(func() {
				if err := b.Put(t.Context(), "agents/a/1.0.0/manifest.json", body); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		got, err := b.Get(t.Context(), "agents/a/1.0.0/manifest.json")
		if err != nil || !bytes.Equal(got, one) && !bytes.Equal(got, two) {
			t.Fatalf("torn: %d bytes, %v", len(got), err)
		}
	}
}

// TestWhatNobodyOpened: a workspace names a bucket, the operator opens places.
func TestWhatNobodyOpened(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	o := bucket.Options{Dir: t.TempDir(), Roots: []string{root, "s3://mine/agents?region=eu-west-1"}, Env: env, Clock: flow.SystemClock{}}
	for _, bad := range []string{"", "x", "mem://", "http://a", "file:///etc", "file://" + root + "/../x", "file://" + root + "x", "file://host/" + root, "s3://other/agents?region=eu-west-1",
		"s3://mine?region=eu-west-1", "s3://mine/agentsx?region=eu-west-1", "s3://mine/agents/../x?region=eu-west-1", "s3://mine/agents.?region=eu-west-1", "s3://mine/.agents?region=eu-west-1", "s3://mine/agents.../?region=eu-west-1", "s3://mine/agents", "s3://mine/agents?region=eu-west-1&endpoint=http://evil", "s3://u:p@mine/agents?region=eu-west-1", ":"} {
		if _, err := bucket.Open("bkt_1", bad, o); flow.CodeOf(err) != flow.CodeInvalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, good := range []string{"file://", "file://" + root, "file://" + root + "/a/b", "s3://mine/agents?region=eu-west-1", "s3://mine/agents/x?region=eu-west-1"} {
		if _, err := bucket.Open("bkt_1", good, o); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
}

func TestAFolderDoesNotLeadOut(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(dir, "bkt_1")
	if err := os.MkdirAll(at, 0o700); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"link": secret, "dir": outside} {
		if err := os.Symlink(to, filepath.Join(at, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(at, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	b, err := bucket.Open("bkt_1", "file://", bucket.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"link", "dir/secret", "folder"} {
		if got, err := b.Get(t.Context(), key); flow.CodeOf(err) != flow.CodeUnavailable {
			t.Errorf("%s: got %q, %v", key, got, err)
		}
	}
	if err := b.Put(t.Context(), "dir/new", []byte("x")); flow.CodeOf(err) != flow.CodeUnavailable {
		t.Errorf("written through a link: %v", err)
	}
	if keys, err := b.List(t.Context(), ""); err != nil || len(keys) != 0 {
		t.Errorf("list: %v, %v", keys, err)
	}
}

// TestWhatS3Says: refusals, pages and answers that are cut become errors
// without the credentials.
func TestWhatS3Says(t *testing.T) {
	t.Parallel()
	var answer http.HandlerFunc
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w, r) }))
	t.Cleanup(srv.Close)
	place := "s3://m?endpoint=" + srv.URL
	o := bucket.Options{Roots: []string{place}, HTTP: srv.Client(), Env: env, Clock: flow.SystemClock{}}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		code   flow.Code
	}{
		"forbidden": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<Error/>", 403) }, flow.CodeUnavailable},
		"broken":    {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", 500) }, flow.CodeUnavailable},
		"missing":   {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", 404) }, flow.CodeNotFound},
		"huge": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(bytes.Repeat([]byte("x"), bucket.MaxObject+9))
		}, flow.CodeTooLarge},
		"cut": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("x"))
		}, flow.CodeUnavailable},
	} {
		answer = c.answer
		b, err := bucket.Open("b", place, o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Get(t.Context(), "k"); flow.CodeOf(err) != c.code || strings.Contains(fmt.Sprintf("%+v", err), "planted") {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
	answer = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("not XML <")) }
	b, err := bucket.Open("b", place, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.List(t.Context(), ""); flow.CodeOf(err) != flow.CodeUnavailable {
		t.Errorf("a list that is none: %v", err)
	}
	pages := 0
	answer = func(w http.ResponseWriter, _ *http.Request) { // a list that does not end
		pages++
		fmt.Fprintf(w, "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>%d</NextContinuationToken>", pages)
		for i := range 1000 {
			fmt.Fprintf(w, "<Contents><Key>agents/%d/%d</Key></Contents>", pages, i)
		}
		fmt.Fprint(w, "</ListBucketResult>")
	}
	if keys, err := b.List(t.Context(), "agents/"); flow.CodeOf(err) != flow.CodeTooLarge || keys != nil || pages != bucket.MaxKeys/1000+1 {
		t.Errorf("a list of more than is taken: %d keys of %d pages, %v", len(keys), pages, err)
	}
	answer = func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>same</NextContinuationToken></ListBucketResult>"))
	}
	if _, err := b.List(t.Context(), "agents/"); flow.CodeOf(err) != flow.CodeUnavailable {
		t.Errorf("a list that goes round: %v", err)
	}
	o.Env = func(string) string { return "" }
	b, err = bucket.Open("b", place, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Get(t.Context(), "k"); flow.CodeOf(err) != flow.CodeUnavailable || !strings.Contains(err.Error(), bucket.EnvAccessKey) && !strings.Contains(fmt.Sprint(err), "credentials") {
		t.Errorf("no credentials: %v", err)
	}
}

// TestKeysOnTheWire: S3 computes the signature over every byte but the
// unreserved ones encoded, and some stores say that what is removed was not
// there.
func TestKeysOnTheWire(t *testing.T) {
	t.Parallel()
	var asked string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.RequestURI
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(srv.Close)
	place := "s3://m?endpoint=" + srv.URL
	b, err := bucket.Open("b", place, bucket.Options{Roots: []string{place}, HTTP: srv.Client(), Env: env, Clock: flow.SystemClock{}})
	if err != nil {
		t.Fatal(err)
	}
	err = b.Delete(t.Context(), "agents/a/1.0.0-rc_1+b/manifest.json")
	if want := "DELETE /m/agents/a/1.0.0-rc_1%2Bb/manifest.json"; err != nil || asked != want {
		t.Errorf("asked %s, %v; want %s", asked, err, want)
	}
}

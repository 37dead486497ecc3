package egress_test

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/egress"
)

func TestBodiesAreCapped(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	mux.HandleFunc("/big", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("x", 20<<20)) })
	mux.HandleFunc("/bomb", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		for range 16 {
			z.Write(make([]byte, 1<<20))
		}
		z.Close()
	})
	mux.HandleFunc("/small", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		io.WriteString(z, "fits")
		z.Close()
	})
	c := guard(t, egress.Policy{AllowPrivate: true}).Client(egress.ClientOptions{})
	for _, path := range []string{"/big", "/bomb"} {
		resp, err := get(t, c, s.URL+path)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := egress.ReadBody(resp, 1<<20); !errors.Is(err, egress.ErrTooLarge) {
			t.Errorf("%s: got %d bytes, %v, want ErrTooLarge", path, len(b), err)
		}
	}
	resp, err := get(t, c, s.URL+"/small")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := egress.ReadBody(resp, 4); err != nil || string(b) != "fits" {
		t.Errorf("/small: got %q, %v", b, err)
	}
	// The transport unpacks what it asked to be packed; what a caller asked
	// for stays packed, and is unpacked within the same bounds.
	noise, members := make([]byte, 1<<16), packed(nil)
	rand.Read(noise)
	for name, tc := range map[string]struct {
		body []byte
		max  int64
		want error
	}{
		"what fits exactly": {packed(noise), 1 << 16, nil},
		"one byte more":     {packed(noise), 1<<16 - 1, egress.ErrTooLarge},
		"a bomb":            {packed(make([]byte, 4<<20)), 1 << 20, egress.ErrTooLarge},
		"empty members":     {bytes.Repeat(members, 500), 1 << 10, egress.ErrTooLarge},
		"closed too early":  {packed(noise)[:1000], 1 << 16, io.ErrUnexpectedEOF},
		"not packed at all": {[]byte("plain text, no gzip"), 1 << 10, gzip.ErrHeader},
	} {
		resp := &http.Response{Header: http.Header{"Content-Encoding": {"gzip"}}, Body: io.NopCloser(bytes.NewReader(tc.body)), ContentLength: -1}
		if b, err := egress.ReadBody(resp, tc.max); !errors.Is(err, tc.want) {
			t.Errorf("%s: got %d bytes, %v, want %v", name, len(b), err, tc.want)
		}
	}
}

func packed(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write(b)
	z.Close()
	return out.Bytes()
}

package mcpclient_test

import (
	"net/http"
	"testing"

	"github.com/longstop-dev/longstop/internal/mcpclient"
)

// BenchmarkSecondCall measures a call on an open session over loopback.
func BenchmarkSecondCall(b *testing.B) {
	for name, h := range handlers(newServer(hooks{})) {
		b.Run(name, func(b *testing.B) {
			url := serve(b, h)
			p := mcpclient.New(mcpclient.Options{HTTP: &http.Client{Transport: &http.Transport{}}})
			b.Cleanup(p.Close)
			for b.Loop() {
				if _, err := p.Call(b.Context(), mcpclient.Server{URL: url}, "text", nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package step

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/egress"
	"github.com/longstop-dev/longstop/internal/flow"
)

// The guard's refusals are of their own kind, and are not tried again.
func TestHTTPThroughTheGuard(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(reply("application/json", 200, `[1]`))
	t.Cleanup(srv.Close)
	closed, err := egress.New(egress.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	table := NewTable(Deps{HTTP: closed.Client(egress.ClientOptions{})})
	for _, url := range []string{srv.URL, "https://127.0.0.1:1/x?key=s3cr3t", "http://169.254.169.254/latest/meta-data?key=s3cr3t", "https://[::ffff:10.0.0.1]/"} {
		_, err := table.Run(t.Context(), "http_request", callOf(`{"url": "`+url+`"}`))
		e := failedAs(t, err, flow.KindEgress)
		if e.Retryable() || strings.Contains(e.Message, "s3cr3t") || strings.Count(e.Message, "://") > 1 || !errors.Is(e, egress.ErrRefused) {
			t.Errorf("%s: got %q, want a refusal that names the place once", url, e.Message)
		}
	}
}

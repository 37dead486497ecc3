package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// recoveryOverhead measures what Longstop adds to a mend by an agent over A2A:
// from the answer that failed a step to the question on the wire, and from the
// agent's answer to the next attempt. API and agent are in this process, so
// that one clock times all of it; both connections are kept open.
func recoveryOverhead(ctx context.Context, b *bed) error {
	p, err := b.folder()
	if err != nil {
		return err
	}
	r, err := b.rig(ctx, p, nil)
	if err != nil {
		return err
	}
	defer r.stop()
	var m mended
	url, closed, err := serve(m.handler())
	if err != nil {
		return err
	}
	defer closed()
	m.url = url
	if _, err := r.client.PutSetting(ctx, "recovery.a2a_agent_url", url); err != nil {
		return err
	}
	source := fmt.Sprintf("name: broken\nsteps:\n  - {type: http_request, config: {url: \"%s/v1/{{ run.id }}\"}}\n", url)
	if err := r.publish(ctx, source); err != nil {
		return err
	}
	one := func(ctx context.Context, _ int) (time.Duration, error) { return 0, r.whole(ctx, "broken") }
	if _, err := times(ctx, b.sizes.mends/10+1, 1, one); err != nil { // warm
		return err
	}
	m.forget()
	if _, err := times(ctx, b.sizes.mends, 1, one); err != nil {
		return err
	}
	if err := r.allEnded(ctx, "broken"); err != nil {
		return err
	}
	for name, took := range map[string][]float64{"recovery/a2a/ask": m.ask, "recovery/a2a/attempt": m.again} {
		if len(took) != b.sizes.mends {
			return flow.Errorf(flow.CodeInternal, "%s: %d of %d mends were seen", name, len(took), b.sizes.mends)
		}
	}
	for _, row := range []Row{
		atMost("recovery/a2a/ask/p50", quantile(m.ask, 0.5), "ms", 2), atMost("recovery/a2a/ask/p99", quantile(m.ask, 0.99), "ms", 10),
		atMost("recovery/a2a/attempt/p50", quantile(m.again, 0.5), "ms", 2), atMost("recovery/a2a/attempt/p99", quantile(m.again, 0.99), "ms", 10),
	} {
		if err := b.add(row, b.sizes.full); err != nil {
			return err
		}
	}
	return nil
}

// mended is an API whose first version is gone and an agent that knows it, for
// one run at a time.
type mended struct {
	url string

	mu     sync.Mutex
	last   time.Time // when API or agent has answered
	ask    []float64 // from the failure to the question, in milliseconds
	again  []float64 // from the answer to the next attempt
	passed int
}

func (m *mended) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ask, m.again = nil, nil
}

// came notes how long it took until the next request came.
func (m *mended) came(to *[]float64) {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	*to = append(*to, millis(now.Sub(m.last)))
}

// answer writes an answer whole, and notes when.
func (m *mended) answer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	m.mu.Lock()
	m.last = time.Now() // before it is sent: the way to the client counts
	m.mu.Unlock()
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

func (m *mended) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/{run}", func(w http.ResponseWriter, _ *http.Request) { m.answer(w, 404, `{"error":"gone"}`) })
	mux.HandleFunc("GET /v2/{run}", func(w http.ResponseWriter, _ *http.Request) {
		m.came(&m.again)
		m.answer(w, 200, `{"ok":true}`)
	})
	mux.HandleFunc("GET /.well-known/agent-card.json", func(w http.ResponseWriter, _ *http.Request) {
		m.answer(w, 200, fmt.Sprintf(`{"name":"bench","description":"Knows the new address.","version":"1.0.0","capabilities":{},
			"supportedInterfaces":[{"url":%q,"protocolBinding":"JSONRPC","protocolVersion":"1.0"}],
			"defaultInputModes":["application/json"],"defaultOutputModes":["application/json"],"skills":[{"id":"r","name":"r","description":"r","tags":["r"]}]}`, m.url+"/rpc"))
	})
	mux.HandleFunc("POST /rpc", func(w http.ResponseWriter, r *http.Request) {
		m.came(&m.ask)
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			m.answer(w, 400, `{}`)
			return
		}
		var q question
		if err := json.Unmarshal(body, &q); err != nil {
			m.answer(w, 400, `{}`)
			return
		}
		m.answer(w, 200, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"data":
			{"type":"retry_with_params","diagnosis":"v1 is gone","modifications":{"httpRequest":{"url":%q}}}}]}}}`, q.ID, strings.Replace(q.address(), "/v1/", "/v2/", 1)))
	})
	return mux
}

// question is what an agent reads of SendMessage.
type question struct {
	ID     json.RawMessage `json:"id"`
	Params struct {
		Message struct {
			Parts []struct {
				Data *flow.RecoveryInput `json:"data"`
			} `json:"parts"`
		} `json:"message"`
	} `json:"params"`
}

// address is the URL that failed.
func (q question) address() string {
	for _, p := range q.Params.Message.Parts {
		if p.Data != nil && p.Data.ResolvedRequest != nil {
			return p.Data.ResolvedRequest.URL
		}
	}
	return ""
}

// serve serves a handler on a free port of loopback.
func serve(h http.Handler) (url string, closed func() error, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.Serve(l) }()
	return "http://" + l.Addr().String(), s.Close, nil
}

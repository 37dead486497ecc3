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
// that one clock times all of it; both connections are kept open. The floor is
// a client that only commits one transaction between answer and request.
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
	recorded, err := b.folder()
	if err != nil {
		return err
	}
	f, err := b.bare(ctx, recorded)
	if err != nil {
		return err
	}
	defer f.stop()
	asks, bare, err := b.inTurn(ctx, b.sizes.mends,
		func(ctx context.Context, n int) ([]float64, error) {
			_, err := times(ctx, n, 1, timed(func(ctx context.Context) error { return r.whole(ctx, "broken") }))
			return m.take(&m.ask), err
		},
		func(ctx context.Context, n int) ([]float64, error) { return m.barely(ctx, f, n) })
	if err != nil {
		return err
	}
	if err := r.allEnded(ctx, "broken"); err != nil {
		return err
	}
	again := m.take(&m.again)
	again = again[max(len(again)-len(asks), 0):] // without those that warmed it up
	for _, row := range []Row{
		atMost("recovery/a2a/ask/p50", quantile(asks, 0.5), "ms", 2).over(quantile(bare, 0.5)),
		atMost("recovery/a2a/ask/p99", quantile(asks, 0.99), "ms", 10).over(quantile(bare, 0.99)),
		atMost("recovery/a2a/attempt/p50", quantile(again, 0.5), "ms", 2).over(quantile(bare, 0.5)),
		atMost("recovery/a2a/attempt/p99", quantile(again, 0.99), "ms", 10).over(quantile(bare, 0.99)),
	} {
		if err := b.add(row, b.sizes.full); err != nil {
			return err
		}
	}
	return nil
}

// barely does what there is to do at the least: it reads an answer, commits
// one transaction and sends a request. It gives the times from answer to
// request, in milliseconds.
func (m *mended) barely(ctx context.Context, f *floor, n int) ([]float64, error) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	_, err := times(ctx, n, 1, timed(func(ctx context.Context) error {
		if err := get(ctx, client, m.url+"/v1/x"); err != nil {
			return err
		}
		if err := f.begin(); err != nil {
			return err
		}
		return get(ctx, client, m.url+"/bare")
	}))
	return m.take(&m.bare), err
}

func get(ctx context.Context, c *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := c.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return err
}

// mended is an API whose first version is gone and an agent that knows it, for
// one run at a time.
type mended struct {
	url string

	mu    sync.Mutex
	last  time.Time // when API or agent has answered
	ask   []float64 // from the failure to the question, in milliseconds
	again []float64 // from the answer to the next attempt
	bare  []float64 // the same without Longstop
}

// came notes how long it took until the next request came.
func (m *mended) came(to *[]float64) {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	*to = append(*to, millis(now.Sub(m.last)))
}

// take gives what was noted and begins anew.
func (m *mended) take(from *[]float64) []float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := *from
	*from = nil
	return out
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
	mux.HandleFunc("GET /bare", func(w http.ResponseWriter, _ *http.Request) {
		m.came(&m.bare)
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

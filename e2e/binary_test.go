// Package e2e drives the real binary as its users do: over its command line,
// its REST API and its signals.
package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/nettest"
)

// built is the folder with the binary that all tests share.
type built struct{ path string }

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "longstop-e2e")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // some tests run it as another user
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "longstop"), "../cmd/longstop")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		os.Exit(1)
	}
	if err := os.Setenv("LONGSTOP_E2E_BINARY", filepath.Join(dir, "longstop")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func binary() string { return os.Getenv("LONGSTOP_E2E_BINARY") }

// process is a server that a test has started.
type process struct {
	t   *testing.T
	dir string
	cmd *exec.Cmd
	url string
	key string
	out *output
	end chan error
}

// output keeps what a process prints.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

const key = "e2e-bootstrap-key-0123456789abcdefghij"

// serve starts the binary on a data folder and waits until it is ready.
func serve(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	p := &process{t: t, dir: dir, key: key, out: &output{}, end: make(chan error, 1)}
	args = append([]string{"serve", "--listen", "127.0.0.1:0", "--data", dir, "--ready-json", "--allow-private-egress"}, args...)
	p.cmd = exec.Command(binary(), args...)
	p.cmd.Env = append(environ(), "LONGSTOP_BOOTSTRAP_KEY="+key)
	p.cmd.Stderr = p.out
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.cmd.Process.Kill(); <-p.end; p.end <- nil })
	ready := make(chan string, 1)
	go func() {
		lines := bufio.NewReader(stdout)
		first, _ := lines.ReadString('\n')
		ready <- first
		io.Copy(p.out, lines)
		p.end <- p.cmd.Wait()
	}()
	select {
	case line := <-ready:
		var r struct {
			URL string `json:"url"`
			Key string `json:"key"`
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.URL == "" {
			t.Fatalf("ready line: got %q (%v), want JSON with url; stderr: %s", line, err, p.out)
		}
		p.url = r.URL
		if r.Key != "" {
			p.key = r.Key
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("not ready after 30 s: %s", p.out)
	}
	return p
}

// environ is the environment without what would change the binary's mind.
func environ() []string {
	var out []string
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "LONGSTOP_") {
			out = append(out, e)
		}
	}
	return out
}

// kill ends the process at once, as a power cut would.
func (p *process) kill() {
	p.t.Helper()
	p.signal(syscall.SIGKILL)
	<-p.end
	p.end <- nil
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("signal: %v", err)
	}
}

// exit waits for the process to end and gives its error.
func (p *process) exit() error {
	p.t.Helper()
	select {
	case err := <-p.end:
		p.end <- nil
		return err
	case <-time.After(30 * time.Second):
		p.t.Fatalf("did not end within 30 s: %s", p.out)
		return nil
	}
}

// call sends a request as the owner and decodes the answer into out.
func (p *process) call(method, path string, body any, out any) int {
	p.t.Helper()
	var rd io.Reader
	if body != nil {
		if raw, ok := body.(string); ok {
			rd = strings.NewReader(raw)
		} else {
			b, err := json.Marshal(body)
			if err != nil {
				p.t.Fatal(err)
			}
			rd = bytes.NewReader(b)
		}
	}
	req, err := http.NewRequest(method, p.url+path, rd)
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+p.key)
	if _, raw := body.(string); raw {
		req.Header.Set("Content-Type", "application/yaml")
	} else if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := nettest.Client().Do(req)
	if err != nil {
		p.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	if out != nil && resp.StatusCode < 300 {
		if err := json.Unmarshal(b, out); err != nil {
			p.t.Fatalf("%s %s: %v in %s", method, path, err, b)
		}
	}
	if resp.StatusCode >= 400 && out != nil {
		p.t.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, b)
	}
	return resp.StatusCode
}

type run struct {
	ID     string
	Status string
	Error  string
	Output json.RawMessage
	Steps  []struct {
		Index          int
		Status         string
		Error          string
		Message        string
		RecoverySource *string `json:"recovery_source"`
		Attempts       int
	}
	Gates []struct{ ID, Kind string }
}

// finished waits until a run has ended.
func (p *process) finished(id string) run {
	p.t.Helper()
	return p.until(id, func(r run) bool { return r.Status == "succeeded" || r.Status == "failed" || r.Status == "cancelled" })
}

// until polls a run of the other process until ok.
func (p *process) until(id string, ok func(run) bool) run {
	p.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(40 * time.Second)
	for {
		var r run
		p.call("GET", "/v1/runs/"+id, nil, &r)
		if ok(r) {
			return r
		}
		select {
		case <-tick.C:
		case <-deadline:
			p.t.Fatalf("run %s is %s after 40 s", id, r.Status)
		}
	}
}

func (p *process) define(yaml string) {
	p.t.Helper()
	var out struct{ VersionID string }
	p.call("POST", "/v1/workflows", yaml, &out)
}

func (p *process) start(workflow string, input any) string {
	p.t.Helper()
	var out run
	p.call("POST", "/v1/workflows/"+workflow+"/runs", map[string]any{"input": input}, &out)
	return out.ID
}

func (p *process) set(key string, value any) {
	p.t.Helper()
	var out any
	p.call("PUT", "/v1/settings/"+key, map[string]any{"value": value}, &out)
}

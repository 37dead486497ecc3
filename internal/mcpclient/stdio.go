package mcpclient

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// errStdin is a command that takes no more input: it is gone.
var errStdin = errors.New("the command takes no input")

// start runs a command and speaks with it over stdio. No shell is involved.
// The command inherits this process's environment but for Longstop's own
// settings, which may hold keys.
func (p *Pool) start(ctx context.Context, srv Server) (*session, error) {
	if len(srv.Command) == 0 {
		return nil, fail(ErrUnreachable, nil, "it names no command")
	}
	l := newLink(p.o.MaxBytes, nil)
	return p.open(ctx, l, func(life context.Context) (mcp.Transport, error) {
		cmd := exec.CommandContext(life, srv.Command[0], srv.Command[1:]...)
		cmd.Env = environment()
		cmd.Stderr = &l.stderr
		ownGroup(cmd)
		cmd.Cancel = func() error { killGroup(cmd); return nil }
		cmd.WaitDelay = goodbye
		stdin, err := cmd.StdinPipe()
		if err != nil {
			return nil, fail(ErrUnreachable, err, "the command %q: %s", srv.Command[0], err)
		}
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			return nil, fail(ErrUnreachable, err, "the command %q: %s", srv.Command[0], err)
		}
		if err := cmd.Start(); err != nil {
			return nil, fail(ErrUnreachable, err, "the command %q does not start: %s", srv.Command[0], err)
		}
		return &mcp.IOTransport{
			Reader:        l.lasting(io.NopCloser(stdout)), // closed by Wait
			Writer:        &process{WriteCloser: stdin, cmd: cmd},
			MaxLineLength: int(p.o.MaxBytes),
		}, nil
	})
}

// tail keeps the end of what a command writes, to be shown when it dies.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// Write keeps the last 1 KiB.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[max(0, len(p)-1024):]...)
	t.text = t.text[max(0, len(t.text)-1024):]
	return len(p), nil
}

// line gives the last line that is not empty.
func (t *tail) line() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.TrimSpace(string(t.text))
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// environment is this process's without LONGSTOP_ variables.
func environment() []string {
	var out []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "LONGSTOP_") {
			out = append(out, v)
		}
	}
	return out
}

// process is a running command's standard input. Closing it ends the command.
type process struct {
	io.WriteCloser
	cmd  *exec.Cmd
	once sync.Once
}

// Write writes to the command.
func (c *process) Write(p []byte) (int, error) {
	n, err := c.WriteCloser.Write(p)
	if err != nil {
		return n, errStdin
	}
	return n, nil
}

// Close closes the command's input, which asks it to go, then signals it, then
// kills it.
func (c *process) Close() error {
	c.once.Do(func() {
		_ = c.WriteCloser.Close()
		slow := time.AfterFunc(goodbye, func() { terminate(c.cmd) })
		dead := time.AfterFunc(2*goodbye, func() { killGroup(c.cmd) })
		_ = c.cmd.Wait() // how it ends is its own affair
		slow.Stop()
		dead.Stop()
		killGroup(c.cmd) // what it started and left behind
	})
	return nil
}

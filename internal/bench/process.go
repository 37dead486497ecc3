package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/server"
)

// process is a longstop that serves in a process of its own.
type process struct {
	cmd    *exec.Cmd
	client *client.Client
	began  time.Time
	ready  time.Duration // from the start of the process to its first answer
	said   *tail
}

// tail keeps the end of what a process says.
type tail struct{ b []byte }

// Write keeps the last kilobytes.
func (t *tail) Write(b []byte) (int, error) {
	t.b = append(t.b, b...)
	if over := len(t.b) - 4096; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(b), nil
}

// binary is what is started.
func (b *bed) binary() (string, error) {
	if b.Binary != "" {
		return b.Binary, nil
	}
	return os.Executable()
}

// spawn starts a longstop on an SQLite database and waits until it is ready.
func (b *bed) spawn(ctx context.Context, p place) (*process, error) {
	path, err := b.binary()
	if err != nil {
		return nil, err
	}
	x := &process{cmd: exec.CommandContext(ctx, path, "serve", "--ready-json", "--listen", "127.0.0.1:0", "--data", p.dir,
		"--allow-private-egress", "--log-level", "error", "--max-active", "2048"), said: &tail{}}
	for _, v := range os.Environ() { // what is set for this process is not meant for the one that is measured
		if !strings.HasPrefix(v, "LONGSTOP_") {
			x.cmd.Env = append(x.cmd.Env, v)
		}
	}
	x.cmd.Env = append(x.cmd.Env, b.Env...)
	x.cmd.Stderr = x.said
	out, err := x.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	x.began = time.Now()
	if err := x.cmd.Start(); err != nil {
		return nil, err
	}
	line, _ := bufio.NewReader(out).ReadBytes('\n')
	x.ready = time.Since(x.began)
	var told struct {
		URL string `json:"url"`
	}
	holder, ok := server.FindHolder(p.dir)
	if json.Unmarshal(line, &told) != nil || told.URL == "" || !ok {
		x.kill()
		return nil, flow.Errorf(flow.CodeUnavailable, "%s did not start: %s", path, strings.TrimSpace(string(x.said.b)))
	}
	x.client = client.New(holder.URL, holder.Key, client.Options{})
	return x, nil
}

// kill ends the process at once, as a crash does.
func (x *process) kill() {
	_ = x.cmd.Process.Kill()
	_ = x.cmd.Wait()
}

// stop ends the process as an operator does.
func (x *process) stop() error {
	if err := x.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return x.cmd.Wait()
}

// memory is what the process has in memory, in bytes.
func (x *process) memory() (float64, error) {
	text, err := x.proc("status")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(text, "VmRSS:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0, flow.Errorf(flow.CodeInternal, "the system does not tell the memory of process %d", x.cmd.Process.Pid)
	}
	kb, err := strconv.ParseFloat(fields[0], 64)
	return kb * 1024, err
}

// cpu is the time that the process has worked.
func (x *process) cpu() (time.Duration, error) {
	text, err := x.proc("stat")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(text, ") ") // the name may hold blanks
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, flow.Errorf(flow.CodeInternal, "the system does not tell the time of process %d", x.cmd.Process.Pid)
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond, err // Linux counts hundredths here
}

func (x *process) proc(name string) (string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", x.cmd.Process.Pid, name))
	if err != nil {
		return "", flow.Errorf(flow.CodeUnavailable, "memory and CPU of a process can be measured on Linux only").Because(err)
	}
	return string(b), nil
}

// quiet lets the process alone for a time and gives the share of one CPU that
// it took, in percent, and its memory at the end, in bytes.
func (x *process) quiet(ctx context.Context, span time.Duration) (percent, memory float64, err error) {
	before, err := x.cpu()
	if err != nil {
		return 0, 0, err
	}
	select {
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	case <-time.After(span):
	}
	after, err := x.cpu()
	if err != nil {
		return 0, 0, err
	}
	memory, err = x.memory()
	return 100 * (after - before).Seconds() / span.Seconds(), memory, err
}

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// fileLimit bounds how large the process's files may grow, as a quota does,
// while it runs.
func (p *process) fileLimit(bytes uint64) {
	p.t.Helper()
	limit := syscall.Rlimit{Cur: bytes, Max: ^uint64(0)}
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(p.cmd.Process.Pid), syscall.RLIMIT_FSIZE, uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
	if errno != 0 {
		p.t.Fatalf("prlimit: %v", errno)
	}
}

// TestAFileThatMayNotGrow takes the room for the database's files away while
// runs execute. They wait, none executes a step again, and all end well once
// there is room.
func TestAFileThatMayNotGrow(t *testing.T) {
	t.Parallel()
	const runs = 20
	var calls atomic.Int64
	called, room := make(chan struct{}, runs), make(chan struct{})
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		called <- struct{}{}
		<-room
		fmt.Fprint(w, `{"ok":true}`)
	}))
	t.Cleanup(up.Close)
	p := serve(t, t.TempDir())
	p.define("name: three\nsteps:\n  - {type: http_request, config: {method: POST, url: \"" + up.URL + "\"}}\n")
	ids := p.startMany(t, runs)
	for range runs {
		<-called
	}
	p.fileLimit(1)
	close(room)
	p.saying("it is offered again until it does")
	if code := p.call("POST", "/v1/workflows/three/runs", map[string]any{}, nil); code != 503 {
		t.Errorf("a new run: got %d, want 503", code)
	}
	p.fileLimit(^uint64(0))
	for _, id := range ids {
		if r := p.finished(id); r.Status != "succeeded" {
			t.Errorf("run %s: got %s (%s)", id, r.Status, r.Error)
		}
	}
	if n := calls.Load(); n != runs {
		t.Errorf("the steps were executed %d times, want %d", n, runs)
	}
}

// saying waits until the process has printed a text.
func (p *process) saying(text string) {
	p.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.After(30 * time.Second)
	for !strings.Contains(p.out.String(), text) {
		select {
		case <-tick.C:
		case <-late:
			p.t.Fatalf("it does not say %q: %s", text, p.out)
		}
	}
}

// TestWhatMayNotBeWritten starts the binary as somebody who may read what
// there is and not write it: it says so, and ends.
func TestWhatMayNotBeWritten(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		forbid func(dir string) error
		says   string
	}{
		"the folder":   {func(dir string) error { return os.Chmod(dir, 0o555) }, "writable"},
		"the database": {func(dir string) error { return os.Chmod(filepath.Join(dir, "longstop.db"), 0o444) }, "may not be written"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			first := serve(t, dir)
			first.signal(syscall.SIGTERM)
			if err := first.exit(); err != nil {
				t.Fatal(err)
			}
			second := exec.Command(binary(), "serve", "--listen", "127.0.0.1:0", "--data", dir)
			second.Env = environ()
			if os.Geteuid() == 0 { // who may write everything
				second.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
				lend(t, dir, 65534)
			}
			if err := tc.forbid(dir); err != nil {
				t.Fatal(err)
			}
			var said output
			second.Stdout, second.Stderr = &said, &said
			if err := second.Start(); err != nil {
				t.Fatal(err)
			}
			late := time.AfterFunc(20*time.Second, func() { second.Process.Kill() })
			defer late.Stop()
			err := second.Wait()
			out := said.String()
			if err == nil || !strings.Contains(out, tc.says) || strings.Contains(out, "goroutine ") {
				t.Errorf("got %v, %s; want it to end and say %q", err, out, tc.says)
			}
		})
	}
}

// lend gives a folder and what is in it to another user.
func lend(t *testing.T, dir string, uid int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Chown(path, uid, uid))
	})
	if err = errors.Join(err, os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
		t.Fatal(err)
	}
}

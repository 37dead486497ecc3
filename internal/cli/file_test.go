package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestWhatAFolderMayHold: a pipe that never ends, a link out of the folder and
// a huge file are refused by name, and nothing is applied.
func TestWhatAFolderMayHold(t *testing.T) {
	t.Parallel()
	good := "name: %\nsteps:\n  - {type: transform, config: {value: 1}}\n"
	for name, c := range map[string]struct {
		make func(path string) error
		says string
	}{
		"a pipe":          {func(p string) error { return syscall.Mkfifo(p, 0o600) }, "no regular file"},
		"a link out":      {func(p string) error { return os.Symlink("/etc/hostname", p) }, "link out of"},
		"a link to a dir": {func(p string) error { return os.Symlink(filepath.Dir(p), p) }, "no regular file"},
		"a dead link":     {func(p string) error { return os.Symlink("nowhere.yaml", p) }, "leads nowhere"},
		"huge": {func(p string) error {
			f, err := os.Create(p)
			if err != nil {
				return err
			}
			defer f.Close()
			return f.Truncate(8 << 30) // it takes no room, and would take memory
		}, "larger than"},
	} {
		dir, data := t.TempDir(), "--data="+t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(strings.Replace(good, "%", "a", 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := c.make(filepath.Join(dir, "b.yaml")); err != nil {
			t.Fatal(err)
		}
		code, _, errOut := line(t, "", "workflows", "apply", dir, data)
		if code != exitUsage || !strings.Contains(errOut, "b.yaml") || !strings.Contains(errOut, c.says) {
			t.Errorf("%s: exit %d, %s; want 2 and %q", name, code, errOut, c.says)
		}
		if out := must(t, "workflows", "list", data); strings.Contains(out, "a ") {
			t.Errorf("%s: something was applied: %s", name, out)
		}
	}
	dir, data := t.TempDir(), "--data="+t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(strings.Replace(good, "%", "linked", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a.yaml", filepath.Join(dir, "b.yml")); err != nil {
		t.Fatal(err)
	}
	if code, out, errOut := line(t, "", "workflows", "apply", dir, data); code == exitOK || !strings.Contains(errOut, "linked") {
		t.Errorf("a link within the folder names the same workflow twice: exit %d, %s%s", code, out, errOut)
	}
	if code, _, errOut := line(t, "", "run", t.TempDir(), data); code != exitUsage || !strings.Contains(errOut, "is a folder") {
		t.Errorf("a folder: exit %d, %s", code, errOut)
	}
	if code, _, errOut := line(t, "", "run", filepath.Join(dir, "none.yaml"), data); code != exitUsage || !strings.Contains(errOut, "no such file") {
		t.Errorf("no file: exit %d, %s", code, errOut)
	}
}

// TestGivingUpOnWhatSaysNothing: a command that waits for a pipe, or for its
// standard input, ends when it is told to.
func TestGivingUpOnWhatSaysNothing(t *testing.T) {
	t.Parallel()
	pipe, data := filepath.Join(t.TempDir(), "pipe.yaml"), "--data="+t.TempDir()
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   []string
		onPipe bool
	}{
		{[]string{"validate", pipe}, true}, {[]string{"run", pipe, data}, true},
		{[]string{"validate", "-"}, false}, {[]string{"run", "-", data}, false}, {[]string{"secrets", "set", "name", data}, false},
	} {
		silent, speaks := io.Pipe()
		held := io.Closer(speaks)
		ctx, giveUp := context.WithCancel(t.Context())
		done := make(chan int)
		var out bytes.Buffer
		go func() { done <- Main(ctx, c.args, silent, &out, &out) }()
		read := make(chan error)
		go func() {
			var err error
			if c.onPipe {
				held, err = os.OpenFile(pipe, os.O_WRONLY, 0) // once it is read
			} else {
				_, err = speaks.Write([]byte("x"))
			}
			read <- err
		}()
		select {
		case err := <-read:
			if err != nil {
				t.Fatal(err)
			}
		case code := <-done:
			t.Fatalf("%v read nothing: exit %d, %s", c.args, code, out.String())
		}
		giveUp()
		if code := <-done; code != exitInterrupted {
			t.Errorf("%v: exit %d, want %d: %s", c.args, code, exitInterrupted, out.String())
		}
		held.Close()
	}
}

// TestFlagsThatAreEmpty: a variable of the shell that is not set does not mean
// the opposite of the flag.
func TestFlagsThatAreEmpty(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"runs", "rerun", "run_1", "--from", ""}, {"runs", "rerun", "run_1", "--input="}, {"push", "--kind=external", "--card=https://a.example", "--bucket=b", "--alias", ""}, {"runs", "list", "--workflow="},
		{"push", "--kind=external", "--card=https://a.example", "--bucket=b", "--scope"}, {"vaults", "create", "v", "--scope="}} {
		if code, _, errOut := line(t, "", append(args, "--data="+t.TempDir())...); code != exitUsage || !strings.Contains(errOut, "it is empty") {
			t.Errorf("%v: exit %d, %s", args, code, errOut)
		}
	}
}

// TestJSONInArguments: what is wrong, in which file, line and column; a file
// that an editor marked as UTF-8 is JSON all the same.
func TestJSONInArguments(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "in.json")
	a := &app{ctx: t.Context()}
	for content, want := range map[string]string{
		"\xef\xbb\xbf{\"a\": 1}\r\n": "",
		"{\n \"a\": 1,\n}":           "--input: " + file + " is not JSON: line 3, column 1",
		"":                           "--input: " + file + " is not JSON: line 1",
	} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := a.jsonArg("--input", "@"+file)
		if want == "" && (err != nil || string(got) != strings.TrimPrefix(content, "\xef\xbb\xbf")) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %q, %v; want %q", content, got, err, want)
		}
	}
	if _, err := a.jsonArg("--input", `{"key": secret}`); err == nil || strings.Contains(err.Error(), "secret}") || !strings.Contains(err.Error(), "it is not JSON: line 1, column 9") {
		t.Errorf("an argument: %v", err)
	}
	if _, err := a.jsonArg("--input", "@"+file+".none"); err == nil || !strings.Contains(err.Error(), "--input: ") {
		t.Errorf("no file: %v", err)
	}
}

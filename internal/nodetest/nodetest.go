// Package nodetest runs other people's servers in Node for tests: the npm
// projects beside a package's tests, under testdata/js.
package nodetest

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Start runs server.mjs of the project testdata/js/PROJECT until the test ends
// and gives the URL that it prints as its first line. The project's packages
// must be installed, which ./test does. env is added to this process's own, as
// NAME=value.
func Start(t testing.TB, project string, env ...string) (url string) {
	t.Helper()
	return StartIn(t, ".", project, env...)
}

// StartIn is [Start] for a project that another package's tests have: below the
// folder of that package.
func StartIn(t testing.TB, folder, project string, env ...string) (url string) {
	t.Helper()
	dir := filepath.Join(folder, "testdata", "js", project)
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		t.Fatalf("the packages of %s are not installed: run ./test, or npm ci in %s of this package", project, filepath.ToSlash(dir))
	}
	cmd := exec.Command("node", "server.mjs")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe() // its end is the sign to go, even if this process is killed
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("node 20 or newer is needed: %v", err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Process.Kill() // it may hold requests open
		_ = cmd.Wait()         // "signal: killed" is what was asked for
		if t.Failed() && stderr.Len() > 0 {
			t.Logf("%s said:\n%s", project, stderr.String())
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("%s printed no URL: %v", project, err)
	}
	return strings.TrimSpace(line)
}

package pgtest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestTheClusterEndsWithItsParent closes the input of a cluster's script, as
// the end of its parent does.
func TestTheClusterEndsWithItsParent(t *testing.T) {
	t.Parallel()
	folder := "/tmp/longstop-pg-" + strings.ToLower(t.Name()) + time.Now().Format("150405.000000")
	c := exec.Command("sh", "cluster.sh", folder)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 6)
	if n, err := out.Read(said); string(said[:n]) != "ready\n" {
		t.Fatalf("got %q (%v), want ready", said[:n], err)
	}
	if err := run(folder, "SELECT 1"); err != nil {
		t.Errorf("while it is up: %v", err)
	}
	in.Close()
	if err := c.Wait(); err != nil {
		t.Errorf("its end: %v", err)
	}
	if err := run(folder, "SELECT 1"); err == nil {
		t.Error("it answers after its end")
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("its folder: got %v, want none", err)
	}
}

// TestAMachineWithoutPostgreSQL looks with nothing on PATH and with no folder
// of Debian's in sight.
func TestAMachineWithoutPostgreSQL(t *testing.T) {
	t.Parallel()
	c := exec.Command("sh", "-c", strings.ReplaceAll(script, "/usr/lib/postgresql", "/none"), "cluster.sh", "--look")
	c.Env = []string{"PATH=" + t.TempDir()}
	said, err := c.CombinedOutput()
	if err == nil || !strings.Contains(string(said), "apt-get install postgresql") {
		t.Errorf("got %q (%v), want a refusal that says what to install", said, err)
	}
}

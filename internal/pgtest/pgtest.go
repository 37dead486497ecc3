// Package pgtest gives tests a real PostgreSQL: one cluster for all, on a
// socket only, and one empty database for each test.
package pgtest

import (
	"bufio"
	"context"
	"crypto/rand"
	_ "embed" // cluster.sh
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Env names the environment variable that may hold the socket's folder of a
// cluster that runs already; ./test sets it.
const Env = "LONGSTOP_TEST_PG"

//go:embed cluster.sh
var script string

// cluster is the one of this test binary, started by the first test that
// wants it.
var cluster = sync.OnceValues(func() (string, error) {
	if folder := os.Getenv(Env); folder != "" {
		return folder, nil
	}
	return start()
})

// URL gives the URL of a new and empty database, which is dropped when the
// test ends. Where PostgreSQL is missing, the test fails and says what to
// install.
func URL(t testing.TB) string {
	t.Helper()
	folder, err := cluster()
	if err != nil {
		t.Fatalf("no PostgreSQL to test with: %v", err)
	}
	name := "t_" + strings.ToLower(rand.Text())
	if err := run(folder, "CREATE DATABASE "+name+" TEMPLATE template1"); err != nil {
		t.Fatalf("%s: %v", folder, err)
	}
	t.Cleanup(func() {
		if err := run(folder, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
	})
	return at(folder, name)
}

// at is the URL of a database of the cluster in folder.
func at(folder, database string) string {
	return "postgres://postgres@/" + database + "?host=" + url.QueryEscape(folder)
}

// run executes a statement as the cluster's owner.
func run(folder, statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, at(folder, "postgres"))
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, statement)
	return err
}

// start starts a cluster that ends when this process does, because its script
// then sees the end of its input. It gives the socket's folder.
func start() (string, error) {
	// Not in t.TempDir(), whose parent the user postgres may not enter.
	folder := filepath.Join("/tmp", fmt.Sprintf("longstop-pg-%d-%s", os.Getpid(), strings.ToLower(rand.Text()[:6])))
	c := exec.Command("sh", "-c", script, "cluster.sh", folder)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt from the keyboard is ours, its input then ends
	in, err := c.StdinPipe()
	if err != nil {
		return "", err
	}
	complaint, err := os.CreateTemp("", "longstop-pg-")
	if err != nil {
		return "", err
	}
	defer os.Remove(complaint.Name())
	defer complaint.Close()
	c.Stderr = complaint // a file: `go test` waits for who holds its own
	out, err := c.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := c.Start(); err != nil {
		return "", err
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	if line != "ready\n" {
		in.Close()
		err := c.Wait()
		said, _ := os.ReadFile(complaint.Name())
		return "", fmt.Errorf("%s (%w)", strings.TrimSpace(string(said)), err)
	}
	keep(in)
	return folder, nil
}

// keep holds the script's input open until the process ends: a pipe that
// nobody refers to any more would be closed by the garbage collector.
func keep(in io.Closer) {
	go func() {
		<-make(chan struct{})
		in.Close()
	}()
}

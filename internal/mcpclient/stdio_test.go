package mcpclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/longstop-dev/longstop/internal/mcpclient"
)

// stdioServer is what the test binary does when it is started as a command.
func stdioServer(how string) int {
	how, addr, _ := strings.Cut(how, "@") // where it is to hold a connection while it lives
	if addr != "" {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return 1
		}
		defer c.Close()
	}
	switch how {
	case "parent":
		if exec.Command(os.Args[0], "stdio-server", "silent@"+addr).Start() != nil {
			return 1
		}
	case "garbage":
		fmt.Println("Welcome to my agent! {")
		block()
	case "ends":
		fmt.Fprintln(os.Stderr, "starting\ncannot read my settings")
		return 3
	case "silent":
		block()
	case "flood":
		for {
			fmt.Print(strings.Repeat("x", 1<<16))
		}
	case "deep":
		fmt.Println(strings.Repeat("[", 10_000))
		block()
	}
	s := newServer(hooks{block: func(context.Context) { os.Exit(1) }}) // dies in the middle of a call
	s.AddTool(&mcp.Tool{Name: "about", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: map[string]any{"pid": os.Getpid(), "key": os.Getenv("LONGSTOP_TEST_KEY")}}, nil
	})
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		return 1
	}
	if filepath.IsAbs(how) {
		_ = os.WriteFile(how, []byte("ended"), 0o600) // how a test sees that it went in peace
	}
	return 0
}

// block never returns; an empty select would be called a deadlock where no
// other goroutine runs.
func block() { <-time.After(time.Hour) }

func command(t *testing.T, how string) mcpclient.Server {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return mcpclient.Server{ID: "mine", Transport: "stdio", Command: []string{self, "stdio-server", how}}
}

// about asks a command who it is.
func about(t *testing.T, p *mcpclient.Pool, srv mcpclient.Server) string {
	t.Helper()
	r, err := p.Call(patient(t), srv, "about", nil)
	if err != nil || r.IsError {
		t.Fatalf("about: %+v, %v", r, err)
	}
	return string(r.Value())
}

func TestStdio(t *testing.T) {
	t.Setenv("LONGSTOP_TEST_KEY", "s3cr3t") // not parallel for that
	p, _ := newPool(t, mcpclient.Options{AllowStdio: true})
	marker := filepath.Join(t.TempDir(), "ended")
	srv := command(t, marker)
	first := about(t, p, srv)
	if again := about(t, p, srv); again != first {
		t.Errorf("a second call: got %s, want the same process %s", again, first)
	}
	if strings.Contains(first, "s3cr3t") {
		t.Errorf("the command sees Longstop's own settings: %s", first)
	}
	if _, err := p.Call(patient(t), srv, "block", nil); !errors.Is(err, mcpclient.ErrUnreachable) {
		t.Errorf("a command that dies in a call: got %v, want %v", err, mcpclient.ErrUnreachable)
	}
	if again := about(t, p, srv); again == first {
		t.Errorf("after its death: got %s, want another process", again)
	}
	p.Close()
	if b, err := os.ReadFile(marker); string(b) != "ended" {
		t.Errorf("after Close: got %q, %v, want that the command has ended by itself", b, err)
	}
}

// Close ends commands, also those that are deaf to it, and what they started.
func TestCommandsEndWithThePool(t *testing.T) {
	t.Parallel()
	for how, lives := range map[string]int{"silent": 1, "parent": 2} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			p := mcpclient.New(mcpclient.Options{AllowStdio: true})
			got := make(chan error, 1)
			go func() { _, err := p.Tools(patient(t), command(t, how+"@"+l.Addr().String())); got <- err }()
			var held []net.Conn
			for range lives {
				c, err := l.Accept()
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				held = append(held, c)
			}
			p.Close()
			if err := <-got; how == "silent" && !errors.Is(err, mcpclient.ErrClosed) {
				t.Errorf("the call under way: got %v, want %v", err, mcpclient.ErrClosed)
			}
			for i, c := range held {
				_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
				if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("process %d lives on: %v", i, err)
				}
			}
		})
	}
}

func TestStdioIsRefused(t *testing.T) {
	t.Parallel()
	p, _ := newPool(t, mcpclient.Options{})
	if _, err := p.Tools(patient(t), command(t, "x")); !errors.Is(err, mcpclient.ErrStdio) {
		t.Errorf("got %v, want %v", err, mcpclient.ErrStdio)
	}
}

func TestStdioFaults(t *testing.T) {
	t.Parallel()
	missing := mcpclient.Server{Transport: "stdio", Command: []string{"no-such-command-here"}}
	for name, c := range map[string]struct {
		srv  mcpclient.Server
		want error
		says string
	}{
		"garbage":    {command(t, "garbage"), mcpclient.ErrProtocol, "invalid character 'W'"},
		"ends":       {command(t, "ends"), mcpclient.ErrUnreachable, "cannot read my settings"},
		"silent":     {command(t, "silent"), mcpclient.ErrTimeout, ""},
		"flood":      {command(t, "flood"), mcpclient.ErrProtocol, ""},
		"deep":       {command(t, "deep"), mcpclient.ErrTooDeep, ""},
		"missing":    {missing, mcpclient.ErrUnreachable, `"no-such-command-here"`},
		"no command": {mcpclient.Server{Transport: "stdio"}, mcpclient.ErrUnreachable, "names no command"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := newPool(t, mcpclient.Options{AllowStdio: true})
			ctx := patient(t)
			if errors.Is(c.want, mcpclient.ErrTimeout) {
				ctx = within(t, 300*time.Millisecond)
			}
			_, err := p.Tools(ctx, c.srv)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %v with %q", err, c.want, c.says)
			}
		})
	}
}

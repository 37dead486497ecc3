package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/pgtest"
)

// TestMain lets the test binary be a recovery agent over stdio when it is
// started as one.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "recovery-agent" {
		s := mcp.NewServer(&mcp.Implementation{Name: "test-agent", Version: "1"}, nil)
		s.AddTool(&mcp.Tool{Name: "diagnose_step_failure", Description: "Gives up.", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{StructuredContent: json.RawMessage(`{"type":"needs_human","diagnosis":"over stdio","suggestion":"look"}`)}, nil
			})
		if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// watched is an output that calls once what it waits for has been printed.
type watched struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	until string
	then  func()
}

func (w *watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.buf.Write(b)
	if w.then != nil && strings.Contains(w.buf.String(), w.until) {
		w.then()
		w.then = nil
	}
	return n, err
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}

const approval = "name: h\nsteps:\n  - {id: ask, type: human_approval, title: Ask, config: {message: \"Send 300 letters?\"}}\n"

// TestThePrintedCommandAnswersTheGate runs the line that a parked run prints
// just as it stands there.
func TestThePrintedCommandAnswersTheGate(t *testing.T) {
	t.Parallel()
	file, data := write(t, "h.yaml", approval), filepath.Join(t.TempDir(), "a folder")
	code, out, errOut := line(t, "", "run", file, "--no-wait", "--data", data)
	if code != exitWaits {
		t.Fatalf("run: exit %d\n%s%s", code, out, errOut)
	}
	holds(t, out, "waits for approval", "to approve: Send 300 letters?", "refuse")
	holds(t, errOut, "made the data folder "+data)
	for _, want := range []string{"gates answer .* approve", "runs follow run_"} {
		printed := regexp.MustCompile(`longstop (` + want + `[^']*) --data '([^']*)'`).FindStringSubmatch(out)
		if printed == nil || printed[2] != data {
			t.Fatalf("no command that matches %q with the data folder in\n%s", want, out)
		}
		out = must(t, append(strings.Fields(printed[1]), "--data", printed[2])...) + out
	}
	holds(t, out, "answered approve", "succeeded", `"approved": true`)
}

// TestLookingMakesNoFolder: in a folder whose name is mistyped there is
// nothing to see, and nothing is left there.
func TestLookingMakesNoFolder(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "mistyped")
	for _, args := range [][]string{{"runs", "list"}, {"settings", "list"}, {"logs", "run_1"}, {"audit", "verify"}, {"vaults", "list"}} {
		code, out, errOut := line(t, "", append(args, "--data", data)...)
		if code != exitFailed || out != "" {
			t.Errorf("%q: exit %d\n%s", args, code, out)
		}
		holds(t, errOut, "there is no data folder "+data)
	}
	if _, err := os.Stat(data); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is there: %v", err)
	}
	must(t, "settings", "set", "recovery.timeout_ms", "20000", "--data", data)
	must(t, "settings", "list", "--data", data)
}

func TestInterruptedRunsAreNotLost(t *testing.T) {
	t.Parallel()
	file := write(t, "h.yaml", approval)
	here := t.TempDir()
	there, _ := held(t)
	for name, tc := range map[string]struct{ data, says string }{
		"embedded":         {here, "at the next start"},
		"another's server": {there, "goes on. To stop it: longstop runs cancel"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		out, errOut := &watched{until: "gates answer", then: cancel}, &bytes.Buffer{}
		if code := Main(ctx, []string{"run", file, "--data", tc.data}, strings.NewReader(""), out, errOut); code != exitInterrupted {
			t.Errorf("%s: exit %d, want 130\n%s%s", name, code, out, errOut)
		}
		cancel()
		holds(t, errOut.String(), tc.says)
		holds(t, must(t, "runs", "list", "--status", "waiting", "--data", tc.data), "h ")
	}
}

// TestJSONIsJSON reads what machines get to its end.
func TestJSONIsJSON(t *testing.T) {
	t.Parallel()
	dir, _ := held(t)
	good := write(t, "g.yaml", "name: g\nsteps: [{type: transform, config: {value: 1}}]\n")
	parked := write(t, "h.yaml", approval)
	for range 2 {
		must(t, "run", good, "--data", dir)
	}
	var list struct {
		Items []struct{ ID string }
		Next  string
	}
	if err := json.Unmarshal([]byte(must(t, "runs", "list", "--limit", "1", "--json", "--data", dir)), &list); err != nil || len(list.Items) != 1 || list.Next == "" {
		t.Errorf("a page of one: got %+v, %v, want one and a next", list, err)
	}
	holds(t, must(t, "runs", "list", "--limit", "1", "--data", dir), "more: --after "+list.Next)
	id := list.Items[0].ID
	for _, args := range [][]string{{"runs", "show", id}, {"logs", id}, {"gates", "list"}, {"cases", "list"}, {"settings", "list"}, {"settings", "get", "recovery.mode"},
		{"secrets", "list"}, {"keys", "list"}, {"mcp-servers", "list"}, {"workflows", "push", good}, {"workflows", "list"}, {"workflows", "show", "g"}} {
		if out := must(t, append(args, "--json", "--data", dir)...); !json.Valid([]byte(out)) {
			t.Errorf("longstop %s --json: got %s", strings.Join(args, " "), out)
		}
	}
	code, out, errOut := line(t, "", "run", parked, "--no-wait", "--json", "--data", dir)
	if code != exitWaits {
		t.Fatalf("run --no-wait --json: exit %d\n%s%s", code, out, errOut)
	}
	var last map[string]any
	for l := range strings.Lines(out) {
		last = nil
		if err := json.Unmarshal([]byte(l), &last); err != nil {
			t.Errorf("%v in line %s", err, l)
		}
	}
	if last["status"] != string(flow.RunWaiting) {
		t.Errorf("the last line: got %v, want the waiting run", last)
	}
}

// TestEmbeddedOnPostgreSQL: what serve keeps in a database is found there
// without serve too, and not looked for in a file.
func TestEmbeddedOnPostgreSQL(t *testing.T) {
	t.Parallel()
	key := write(t, "master.key", strings.Repeat("ab", 32))
	database := "--database-url=" + pgtest.URL(t)
	good := write(t, "g.yaml", "name: g\nsteps: [{type: transform, config: {value: 1}}]\n")
	must(t, "run", good, database, "--master-key-file", key, "--data", t.TempDir())
	holds(t, must(t, "runs", "list", database, "--master-key-file", key, "--data", t.TempDir()), "succeeded")
	if code, _, errOut := line(t, "", "runs", "list", database, "--data", t.TempDir()); code != exitUsage || !strings.Contains(errOut, "--master-key-file") {
		t.Errorf("without the master key: got %d %s, want 2 and --master-key-file", code, errOut)
	}
}

func TestAnAgentOverStdioIsTried(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	holds(t, must(t, "agents", "test", "--", self, "recovery-agent"), "tool diagnose_step_failure found", "over stdio", "it would be taken")
	for arg, fix := range map[string]string{"127.0.0.1:9999": "https://127.0.0.1:9999", "mine": "mcp:mine"} {
		if code, _, errOut := line(t, "", "agents", "test", arg); code != exitUsage || !strings.Contains(errOut, fix) {
			t.Errorf("agents test %s: got %d %s, want 2 and %s", arg, code, errOut, fix)
		}
	}
}

// TestEveryCommandHasAnExample reads the help that users read.
func TestEveryCommandHasAnExample(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(&commands{}, kong.Vars{"version": "x"})
	if err != nil {
		t.Fatal(err)
	}
	leaves := parser.Model.Leaves(false)
	if len(leaves) < 30 {
		t.Fatalf("got %d commands, want all", len(leaves))
	}
	for _, leaf := range leaves {
		path := slices.DeleteFunc(strings.Fields(leaf.Path()), func(w string) bool { return strings.ContainsAny(w, "<[(") })
		if want := "longstop " + strings.Join(path, " "); !strings.Contains(leaf.Detail, "Example") || !strings.Contains(leaf.Detail, want) {
			t.Errorf("%s: its help has no example with %q:\n%s", leaf.Path(), want, leaf.Detail)
		}
	}
	for _, args := range [][]string{{"help", "runs", "list"}, {"runs", "list", "--help"}, {"--version"}, {"version"}, {"help"}, {}} {
		holds(t, must(t, args...), "longstop ")
	}
}

func TestArgumentsAreQuoted(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"./a-b": "./a-b", "a b": "'a b'", "": "''", "it's": `'it'\''s'`, "$(x)": "'$(x)'", "~x": "'~x'"} {
		if got := quoted(in); got != want {
			t.Errorf("quoted(%q): got %s, want %s", in, got, want)
		}
	}
	if got, want := (connection{Endpoint: "http://x:1", Key: "k"}).where(), fmt.Sprintf(` --endpoint http://x:1 --key "$LONGSTOP_KEY"`); got != want {
		t.Errorf("where: got %s, want %s", got, want)
	}
}

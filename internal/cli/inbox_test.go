package cli

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestTheInboxOnTheCommandLine(t *testing.T) {
	t.Parallel()
	dir, _ := held(t)
	data := "--data=" + dir
	file := write(t, "w.yaml", "name: w\nrecovery: {mode: agent}\nsteps:\n  - {id: one, type: transform, title: Make it, config: {value: \"{{ input.a }}\"}}\n")
	if out := must(t, "cases", "pending", data); !strings.Contains(out, "none") {
		t.Errorf("an empty inbox: got %q", out)
	}
	done := make(chan string, 1)
	go func() {
		_, out, errOut := line(t, "", "run", file, "--no-wait", data)
		done <- out + errOut
	}()
	var l struct {
		Items []struct{ RunID string }
	}
	if err := json.Unmarshal([]byte(must(t, "cases", "pending", "--wait", "30s", "--json", data)), &l); err != nil || len(l.Items) != 1 {
		t.Fatalf("pending: got %+v, %v, want one", l, err)
	}
	run := l.Items[0].RunID
	holds(t, must(t, "cases", "pending", data), run, "Make it", "transform")
	holds(t, must(t, "cases", "pending", run, "0", data), `"schema_version": 1`, `"title": "Make it"`)
	holds(t, must(t, "cases", "claim", run, "0", "--name", "agent-7", "--lease", "2m", data), "claimed by agent-7")
	holds(t, must(t, "cases", "pending", data), "agent-7")
	if code, _, errOut := line(t, "", "cases", "claim", run, "0", data); code != exitFailed || !strings.Contains(errOut, "claimed by agent-7") {
		t.Errorf("somebody else's case: got %d %s, want 1 and the holder", code, errOut)
	}
	must(t, "cases", "release", run, "0", "--name", "agent-7", data)
	if code, _, errOut := line(t, "", "cases", "answer", run, "0", `{"type":"fixed_output","diagnosis":"x"}`, data); code != exitUsage || !strings.Contains(errOut, "output") {
		t.Errorf("an invalid action: got %d %s, want 2 and output", code, errOut)
	}
	holds(t, must(t, "cases", "answer", run, "0", `{"type":"fixed_output","diagnosis":"known","output":7}`, data), "applied fixed_output")
	// --no-wait does not wait for people; an agent is none.
	holds(t, <-done, "waits in the inbox for your agent", "longstop cases pending", "mended by your agent", "succeeded")
	if code, _, errOut := line(t, "", "cases", "answer", run, "0", `{"type":"fixed_output","diagnosis":"late","output":8}`, data); code != exitFailed || !strings.Contains(errOut, "fixed_output: known") {
		t.Errorf("a late action: got %d %s, want 1 and what was applied", code, errOut)
	}
}

func TestNoticesOnTheCommandLine(t *testing.T) {
	t.Parallel()
	dir, _ := held(t)
	data := "--data=" + dir
	if code, _, errOut := line(t, "", "notices", "test", data); code != exitUsage || !strings.Contains(errOut, "notify.url") {
		t.Errorf("without a receiver: got %d %s, want 2 and the setting", code, errOut)
	}
	holds(t, must(t, "notices", "list", data), "none")
	must(t, "settings", "set", "notify.url", "http://127.0.0.1:1/hook", data)
	if code, _, errOut := line(t, "whsec_"+strings.Repeat("QUFB", 10)+"\n", "settings", "set", "notify.secret", "-", data); code != exitOK {
		t.Fatalf("the secret: got %d %s", code, errOut)
	}
	if code, out, _ := line(t, "", "notices", "test", data); code != exitFailed || !strings.Contains(out, "cannot be reached") {
		t.Errorf("a receiver that is not there: got %d %s, want 1 and why", code, out)
	}
}

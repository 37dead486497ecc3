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

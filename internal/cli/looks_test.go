package cli

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

const twoSteps = `name: w
input: {type: object, required: [who]}
steps:
  - {id: one, type: transform, config: {value: {n: 1, who: "{{ input.who }}"}}}
  - {id: two, type: transform, config: {value: "{{ steps.one.output.gone }}"}}
`

// failed runs a workflow to its failure and gives the run.
func failed(t *testing.T, data string) string {
	t.Helper()
	code, out, errOut := line(t, "", "run", write(t, "w.yaml", twoSteps), "--input", `{"who":"x"}`, "--no-wait", data)
	if code != exitWaits {
		t.Fatalf("run: exit %d, want 3\n%s%s", code, out, errOut)
	}
	must(t, "gates", "answer", regexp.MustCompile(`gate_\w+`).FindString(out), "fail", data)
	run := regexp.MustCompile(`run_\w+`).FindString(out)
	return run
}

func TestAFailedRunIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	dir, _ := held(t)
	data := "--data=" + dir
	run := failed(t, data)
	if code, out, errOut := line(t, "", "runs", "retry", run, "--hint", "it has moved", "--no-wait", data); code != exitWaits || !strings.Contains(out, "retried with a hint: it has moved") {
		t.Errorf("retry: exit %d, want 3 and the hint\n%s%s", code, out, errOut)
	} else {
		must(t, "gates", "answer", regexp.MustCompile(`gate_\w+`).FindString(out), "fail", data)
	}
	mended := write(t, "mended.yaml", strings.Replace(twoSteps, "output.gone", "output.who", 1))
	out := must(t, "runs", "rerun", run, "--from", "two", "--file", mended, data)
	holds(t, out, "started again from "+run+", from step two", "carried over, not executed: one", `"x"`)
	again := regexp.MustCompile(`run_\w+`).FindString(out)
	holds(t, must(t, "runs", "show", run, data), "started again as "+again)
	holds(t, must(t, "runs", "show", again, data), "started again from "+run)
	holds(t, must(t, "logs", again, data), "carried over from "+run)
	holds(t, must(t, "runs", "compare", run, again, data), "- "+run, "+ "+again, "~ two", "- failed", `+ output: "x"`, "carried over from "+run)
	var v struct {
		Same  bool
		Steps []struct {
			ID   string
			Same bool
		}
	}
	if err := json.Unmarshal([]byte(must(t, "runs", "compare", run, again, "--json", data)), &v); err != nil || v.Same || len(v.Steps) != 2 || !v.Steps[0].Same || v.Steps[1].Same {
		t.Errorf("compare --json: got %+v, %v, want one step of two the same", v, err)
	}
	holds(t, must(t, "runs", "compare", again, again, data), "the same input, statuses and outputs")
	detached := must(t, "runs", "rerun", again, "--detach", data)
	holds(t, detached, "longstop runs follow run_", "--data")
	for want, args := range map[string][]string{
		"no step":                        {"runs", "rerun", run, "--from", "nowhere", data},
		"leave out --version or --file":  {"runs", "rerun", run, "--file", mended, "--version", "newest", data},
		"does not satisfy":               {"runs", "rerun", run, "--input", "{}", data},
		"is not published":               {"runs", "rerun", run, "--version", "newest", data},
		"start longstop dev or serve":    {"runs", "rerun", run, "--detach", "--data=" + t.TempDir()},
		"only a failed run can be retri": {"runs", "retry", again, data},
	} {
		if code, _, errOut := line(t, "", args...); code == exitOK || !strings.Contains(errOut, want) {
			t.Errorf("longstop %s: got %d %s, want a refusal with %q", strings.Join(args, " "), code, errOut, want)
		}
	}
}

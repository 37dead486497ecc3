package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func plan(name, value string) string {
	return "name: " + name + "\nsteps:\n  - {id: one, type: transform, config: {value: " + value + "}}\n"
}

// folder writes files into a folder and gives what writes more.
func folder(t *testing.T) (dir string, put func(name, text string)) {
	t.Helper()
	dir = t.TempDir()
	return dir, func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestVersionsOnTheCommandLine(t *testing.T) {
	t.Parallel()
	data, _ := held(t)
	data = "--data=" + data
	file := write(t, "w.yaml", plan("w", "one"))
	holds(t, must(t, "workflows", "publish", file, data), "w version 1")
	holds(t, must(t, "workflows", "push", file, data), "w version 1")
	if code, _, errOut := line(t, "", "workflows", "diff", "w", data); code != exitUsage || !strings.Contains(errOut, "one version only") {
		t.Errorf("diff of one version: got %d %s", code, errOut)
	}
	if err := os.WriteFile(file, []byte(plan("w", "two")), 0o600); err != nil {
		t.Fatal(err)
	}
	holds(t, must(t, "workflows", "publish", file, data), "w version 2")
	diff := must(t, "workflows", "diff", "w", data)
	holds(t, diff, "--- w version 1", "+++ w version 2", "-  - {id: one, type: transform, config: {value: one}}", "+  - {id: one, type: transform, config: {value: two}}")
	if got := must(t, "workflows", "diff", "w", "1", data); got != diff {
		t.Errorf("diff from 1: got %s", got)
	}
	holds(t, must(t, "workflows", "diff", "w", "2", "2", data), "no difference")
	holds(t, must(t, "workflows", "publish", "w", "--version", "1", data), "w version 1")
	if got := must(t, "workflows", "versions", "w", data); !regexp.MustCompile(`(?m)^1 .* published$`).MatchString(got) || strings.Count(got, "published") != 1 {
		t.Errorf("versions: got\n%s\nwant 1 published", got)
	}
	holds(t, must(t, "runs", "start", "w", data), `"one"`)
	holds(t, must(t, "runs", "start", "w", "--version", "2", data), `"two"`)
	holds(t, must(t, "workflows", "show", "w", "--version", "2", data), "value: two")
	holds(t, must(t, "workflows", "unpublish", "w", data), "w starts no new runs; it was version 1")
	for want, args := range map[string][]string{
		"is not published":                {"runs", "start", "w", data},
		`has no version "9"`:              {"runs", "start", "w", "--version", "9", data},
		"a file becomes the next version": {"workflows", "publish", file, "--version", "1", data},
		"cannot be read":                  {"workflows", "publish", "missing.yaml", data},
		`there is no workflow "missing"`:  {"workflows", "publish", "missing", data},
	} {
		if code, _, errOut := line(t, "", args...); code == exitOK || !strings.Contains(errOut, want) {
			t.Errorf("longstop %s: got %d %s, want a refusal with %q", strings.Join(args, " "), code, errOut, want)
		}
	}
	holds(t, must(t, "workflows", "publish", "w", data), "w version 2")
	one := regexp.MustCompile(`run_\w+`).FindString(must(t, "runs", "start", "w", "--idempotency-key", "today", "--detach", data))
	if two := regexp.MustCompile(`run_\w+`).FindString(must(t, "runs", "start", "w", "--idempotency-key", "today", data)); one == "" || two != one {
		t.Errorf("the same key: got runs %q and %q, want one", one, two)
	}
}

// A definition that holds what has become a secret is shown masked, and is not
// published again for that.
func TestAFolderWithASecretIsTheSame(t *testing.T) {
	t.Parallel()
	where, _ := held(t)
	data := "--data=" + where
	dir, put := folder(t)
	put("a.yaml", plan("a", "value-0123456789"))
	must(t, "workflows", "apply", dir, data)
	if code, out, errOut := line(t, "value-0123456789\n", "secrets", "set", "late", data); code != exitOK {
		t.Fatalf("secrets set: got %d %s%s", code, out, errOut)
	}
	holds(t, must(t, "workflows", "show", "a", data), "[secret:late]")
	holds(t, must(t, "workflows", "apply", dir, data), "= a version 1")
}

func TestAFolderIsApplied(t *testing.T) {
	t.Parallel()
	where, _ := held(t)
	data := "--data=" + where
	dir, put := folder(t)
	put("a.yaml", plan("a", "one"))
	put("deep/b.yml", plan("b", "one"))
	put(".hidden/c.yaml", "not a workflow")
	put("README.md", "neither")
	apply := func(want int, args ...string) (out, errOut string) {
		t.Helper()
		code, out, errOut := line(t, "", append([]string{"workflows", "apply", dir, data}, args...)...)
		if code != want {
			t.Fatalf("apply %v: exit %d, want %d\n%s%s", args, code, want, out, errOut)
		}
		return out, errOut
	}
	out, _ := apply(exitOK, "--dry-run")
	holds(t, out, "a would create", "b would create", "--- /dev/null", "+++ "+filepath.Join(dir, "a.yaml"), "@@ -0,0 +1,3 @@", "+name: a")
	apply(exitFailed, "--dry-run", "--exit-code")
	if got := must(t, "workflows", "list", data); !strings.Contains(got, "none") {
		t.Errorf("a dry run changed something: %s", got)
	}
	out, _ = apply(exitOK)
	holds(t, out, "+ a version 1", "+ b version 1")
	out, _ = apply(exitOK, "--dry-run", "--exit-code")
	holds(t, out, "= a version 1", "= b version 1")

	put("a.yaml", plan("a", "two"))
	put("deep/bad.json", `{"name": "bad", "steps": [{"type": "no_such"}]}`)
	put("again.yaml", plan("b", "other"))
	_, errOut := apply(exitUsage)
	holds(t, errOut, "nothing was changed", "bad.json", "no_such", `workflow "b" stands in`)
	holds(t, must(t, "workflows", "show", "a", data), "value: one")

	for _, name := range []string{"deep/bad.json", "again.yaml", "deep/b.yml"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	out, _ = apply(exitOK)
	holds(t, out, "+ a version 2", "? b is published and not in the folder")
	out, _ = apply(exitFailed, "--dry-run", "--prune", "--exit-code")
	holds(t, out, "- b would unpublish version 1")
	out, _ = apply(exitOK, "--prune", "--json")
	var v struct {
		DryRun bool
		Items  []struct {
			Name, Change string
			Number       int
		}
	}
	if err := json.Unmarshal([]byte(out), &v); err != nil || len(v.Items) != 2 || v.Items[0].Change != "unchanged" || v.Items[1].Name+v.Items[1].Change != "bunpublish" {
		t.Errorf("--json: got %s, %v", out, err)
	}
	if got := must(t, "workflows", "list", data); strings.Contains(got, "\nb ") {
		t.Errorf("after --prune: got %s", got)
	}
	holds(t, must(t, "workflows", "versions", "b", data), "1 ")
	put("deep/b.yml", plan("b", "one"))
	out, _ = apply(exitOK)
	holds(t, out, "+ b version 1") // the text is known

	_, errOut = apply(exitUsage, "--exit-code")
	holds(t, errOut, "--dry-run")
	dir = t.TempDir()
	_, errOut = apply(exitUsage, "--prune")
	holds(t, errOut, "there is no .yaml, .yml or .json file")
	dir = filepath.Join(dir, "missing")
	_, errOut = apply(exitUsage)
	holds(t, errOut, "cannot be read")
}

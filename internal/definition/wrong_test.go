package definition_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/flow"
)

// steps makes a definition with these lines as its list of steps, which
// begins in line 3.
func steps(lines string) string { return "name: x\nsteps:\n" + lines }

// http makes one with a single request, whose config begins in line 5.
func http(config string) string {
	return steps("  - type: http_request\n    config:\n      " + strings.ReplaceAll(config, "\n", "\n      ") + "\n")
}

// aliasBomb is a definition of 400 bytes that stands for 10^10 values.
func aliasBomb() string {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.Repeat("*"+string(c-1)+",", 10))
	}
	return bomb
}

// TestWhatIsWrongIsTold compares line, field, message and remedy of every
// problem with testdata/wrong.golden.txt; UPDATE=1 writes it.
func TestWhatIsWrongIsTold(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, c := range wrongSources() {
		file := c[2]
		if file == "" {
			file = "x.yaml"
		}
		fmt.Fprintf(&b, "%s\n", c[0])
		found := problems(t, file, c[1])
		if len(found) == 0 {
			t.Errorf("%s: got no problem, want one", c[0])
		}
		for _, p := range found {
			fmt.Fprintf(&b, "\tline %d: %s: %s (%s)\n", p.Line, p.Field, p.Message, p.Fix)
			if p.Fix == "" || p.Message == "" {
				t.Errorf("%s: got %+v, want a message and what would be right", c[0], p)
			}
		}
	}
	const golden = "testdata/wrong.golden.txt"
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(golden, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	got, wanted := strings.Split(b.String(), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(got), len(wanted)) {
		if i >= len(got) || i >= len(wanted) || got[i] != wanted[i] {
			t.Fatalf("%s:%d:\n got %s\nwant %s", golden, i+1, strings.Join(got[min(i, len(got)):min(i+1, len(got))], ""), strings.Join(wanted[min(i, len(wanted)):min(i+1, len(wanted))], ""))
		}
	}
}

func TestProblemsAreBounded(t *testing.T) {
	t.Parallel()
	found := problems(t, "x.yaml", "name: x\nsteps:\n"+strings.Repeat("  - {type: nope}\n", 500))
	if len(found) != 50 {
		t.Errorf("got %d problems, want 50", len(found))
	}
	if first := (flow.Problem{Line: 3, Field: "steps[0].type", Message: `there is no step type "nope"`, Fix: found[0].Fix}); found[0] != first {
		t.Errorf("got %+v, want %+v", found[0], first)
	}
}

// wrongSources are name, source and, unless it is YAML, the file's name.
func wrongSources() [][3]string {
	const ok = "  - {type: transform, config: {value: 1}}\n"
	return append(wrongSteps(ok), wrongFiles(ok)...)
}

func wrongSteps(ok string) [][3]string {
	return [][3]string{
		{"scalar", "hello"},
		{"missing", "description: x"},
		{"empty", ""}, {"comment", "# x\n"},
		{"bad name", "name: a b\nsteps:\n" + ok},
		{"number name", "name: 7\nsteps:\n" + ok},
		{"typo top", "name: x\nstep:\n" + ok},
		{"typo top2", "name: x\nfoo: 1\nsteps:\n" + ok},
		{"empty steps", "name: x\nsteps: []\n"},
		{"steps object", "name: x\nsteps: {a: 1}\n"},
		{"step is text", steps("  - hello\n")},
		{"no type", steps("  - {id: a}\n")},
		{"unknown type", steps("  - {type: http_requst, config: {}}\n")},
		{"far type", steps("  - {type: banana}\n")},
		{"unknown member", steps("  - type: transform\n    config: {value: 1}\n    timout: 3s\n")},
		{"unknown config", http("url: https://x\nmethd: GET")},
		{"missing url", http("method: GET")},
		{"bad enum", http("url: https://x\nmethod: PSOT")},
		{"bad kind", http("url: https://x\nexpect: 200")},
		{"bad kind deep", http("url: https://x\nexpect: [200, abc]")},
		{"headers bad", http("url: https://x\nheaders: {A: {b: 1}}")},
		{"url number", http("url: 7")},
		{"config text", steps("  - {type: transform, config: hello}\n")},
		{"duration", steps("  - {type: transform, config: {value: 1}, timeout: 30}\n")},
		{"duration2", steps("  - {type: transform, config: {value: 1}, timeout: 30 seconds}\n")},
		{"duration3", steps("  - {type: transform, config: {value: 1}, timeout: 0s}\n")},
		{"duration4", steps("  - {type: transform, config: {value: 1}, timeout: 3d, total_timeout: 1m}\n")},
		{"total", steps("  - {type: transform, config: {value: 1}, timeout: 5m, total_timeout: 1m}\n")},
		{"retry", steps("  - {type: transform, config: {value: 1}, retry: 3}\n")},
		{"retry2", steps("  - {type: transform, config: {value: 1}, retry: {backoff: 1s}}\n")},
		{"retry3", steps("  - {type: transform, config: {value: 1}, retry: {attempts: 0, backof: 1s}}\n")},
		{"retry4", steps("  - {type: transform, config: {value: 1}, retry: {attempts: 2, backoff: 10s, max_backoff: 1s}}\n")},
		{"dup id", steps("  - {id: a, type: transform, config: {value: 1}}\n  - {id: a, type: transform, config: {value: 1}}\n")},
		{"index id", steps("  - {id: 3, type: transform, config: {value: 1}}\n  - {id: \"4\", type: transform, config: {value: 1}}\n")},
		{"bad id", steps("  - {id: a.b, type: transform, config: {value: 1}}\n")},
		{"default id clash", steps("  - {id: s1, type: transform, config: {value: 1}}\n" + ok)},
		{"unknown step", steps("  - {id: user, type: transform, config: {value: 1}}\n  - type: transform\n    config:\n      value: \"{{ steps.usr.output }}\"\n")},
		{"later step", steps("  - {id: a, type: transform, config: {value: \"{{ steps.b.output }}\"}}\n  - {id: b, type: transform, config: {value: 1}}\n")},
		{"own", steps("  - {id: a, type: transform, config: {value: \"{{ steps.a.output }}\"}}\n")},
		{"by index later", steps("  - {id: a, type: transform, config: {value: \"{{ steps.7.output }}\"}}\n")},
		{"branch", steps("  - id: c\n    type: conditional\n    config:\n      if: \"true\"\n      then:\n        - {id: a, type: transform, config: {value: \"{{ steps.c.output }}\"}}\n      else:\n        - {id: b, type: transform, config: {value: \"{{ steps.a.output }}\"}}\n")},
		{"cel syntax", steps("  - type: conditional\n    config:\n      if: input.x ==\n      then: []\n")},
		{"cel unknown step", steps("  - type: conditional\n    config:\n      if: steps.x.output\n      then: []\n")},
		{"cel when", steps("  - type: conditional\n    config:\n      cases:\n        - when: inptu.x\n          steps: []\n")},
		{"$cel", steps("  - type: transform\n    config:\n      value:\n        a: {$cel: \"1 +\"}\n        b: {$cel: 1}\n")},
		{"cond both", steps("  - type: conditional\n    config: {if: \"true\", then: [], cases: []}\n")},
		{"cond none", steps("  - type: conditional\n    config: {else: []}\n")},
		{"cond no then", steps("  - type: conditional\n    config: {if: \"true\"}\n")},
		{"then object", steps("  - type: conditional\n    config: {if: \"true\", then: {type: wait}}\n")},
		{"then text", steps("  - type: conditional\n    config: {if: \"true\", then: [hello]}\n")},
		{"nested bad", steps("  - type: conditional\n    config:\n      if: \"true\"\n      then:\n        - type: wait\n          config: {for: soon}\n")},
		{"wait none", steps("  - {type: wait}\n")},
		{"wait both", steps("  - {type: wait, config: {for: 1s, until: \"x\"}}\n")},
		{"template syntax", http("url: \"https://x/{{ input.x\"")},
		{"template root", http("url: \"https://x/{{ inpt.x }}\"")},
		{"template key", http("url: https://x\nheaders: {\"{{ input.x }}\": a}")},
		{"yaml template unquoted", http("url: {{ input.x }}")},
		{"item", http("url: \"{{ item }}\"")},
		{"secrets", http("url: \"{{ secrets }}\"")},
		{"output ref", "name: x\nsteps:\n" + ok + "output: \"{{ steps.nope.output }}\"\n"},
	}
}

func wrongFiles(ok string) [][3]string {
	return [][3]string{
		{"recovery", "name: x\nrecovery: {mod: sync, a2a_agent_url: https://x, a2a_auth_token: y, recovery.mode: sync, timeout_ms: {a: 1}, builtin: \"{{ input.x }}\", allowed_hosts: [\"a,b\"]}\nsteps:\n" + ok},
		{"recovery list", "name: x\nrecovery: [sync]\nsteps:\n" + ok},
		{"input schema", "name: x\ninput: {type: objekt, required: userId}\nsteps:\n" + ok},
		{"input ref", "name: x\ninput: {$ref: \"file:///etc/passwd\"}\nsteps:\n" + ok},
		{"input ref2", "name: x\ninput: {$ref: \"https://example.com/x.json\"}\nsteps:\n" + ok},
		{"input ref3", "name: x\ninput: {$ref: \"#/$defs/x\"}\nsteps:\n" + ok},
		{"input ref4", "name: x\ninput: {$ref: \"other.json\"}\nsteps:\n" + ok},
		{"input regex", "name: x\ninput:\n  properties:\n    a: {pattern: \"(?=x)\"}\nsteps:\n" + ok},
		{"input list", "name: x\ninput: [1]\nsteps:\n" + ok},
		{"meta", "name: x\ninput: {$schema: \"https://example.com/meta\"}\nsteps:\n" + ok},
		{"dup key", steps("  - type: transform\n    type: wait\n    config: {value: 1}\n")},
		{"tab", "name: x\nsteps:\n\t- type: x\n"},
		{"tab2", "name: x\nsteps:\n  - type: transform\n    config:\n\t  value: 1\n"},
		{"multi", "name: x\n---\nname: y\n"},
		{"alias bomb", aliasBomb()},
		{"selfalias", "name: x\nsteps: &a [*a]\n"},
		{"octal", http("url: https://x\nbody: 007")},
		{"inf", http("url: https://x\nbody: .inf")},
		{"tag", http("url: !foo https://x")},
		{"merge", "b: &b {type: wait}\nname: x\nsteps: [{<<: *b}]\n"},
		{"complexkey", "? [a]\n: b\n"},
		{"deep", "name: x\nsteps: " + strings.Repeat("[", 150) + strings.Repeat("]", 150)},
		{"verydeep", "name: x\nsteps: " + strings.Repeat("[", 20000)},
		{"big", "name: x\n#" + strings.Repeat("x", 1<<20)},
		{"many", "name: x\nsteps:\n" + strings.Repeat("  - {type: wait, config: {for: 1s}}\n", 1001)},
		{"utf8", "name: x\n# \xff\n"},
		{"anchor", "name: x\ntitle: *nope\n"},
		{"json", "{\n\"name\": \"x\",\n\"steps\": [\n]\n}", "x.json"},
		{"json syntax", "{\n\"name\": \"x\",\n}", "x.json"},
		{"json dup", "{\n\"name\": \"x\",\n\"name\": \"y\"}", "x.json"},
		{"json deep", "{\"a\":" + strings.Repeat("[", 20000), "x.json"},
		{"json deep2", "{\"a\":" + strings.Repeat("[", 500) + strings.Repeat("]", 500) + "}", "x.json"},
		{"json trailing", "{} {}", "x.json"},
		{"title long", steps("  - {type: transform, config: {value: 1}, title: " + strings.Repeat("x", 300) + "}\n")},
		{"title list", steps("  - {type: transform, config: {value: 1}, title: [a]}\n")},
	}
}

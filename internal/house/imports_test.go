package house

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// layers is who may import whom: a part of the house and the parts whose
// packages it may import. A part is a folder under internal/ with all that is
// below it, or a folder at the root. Files of tests are free.
//
// To add a package, give it a line here: say which kind it is (a leaf, a
// service, a face) and list as little as it needs.
func layers() map[string][]string {
	leaves := []string{"definition", "expr", "sandbox", "egress", "secret", "bucket", "notify", "a2a", "mcpclient", "ident", "watch", "phrase", "fair"}
	services := []string{"step", "engine", "recovery", "responder", "agent", "vault", "trigger", "connector", "access", "dispatch", "bridge"}
	allow := map[string][]string{
		// The vocabulary: the standard library and nothing else.
		"flow": {},

		// Leaf helpers do one thing and know no service.
		"ident":      {},
		"phrase":     {"flow"},
		"watch":      {},
		"fair":       {},
		"expr":       {"flow"},
		"definition": {"flow", "expr"},
		"sandbox":    {"flow"},
		"egress":     {"flow"},
		"secret":     {"flow"},
		"bucket":     {"flow", "egress"},
		"notify":     {"flow", "egress", "secret"},
		"a2a":        {"flow", "egress"},
		"mcpclient":  {"flow", "egress"},

		// The audit record's chain: it is written by the store and verified by whoever likes.
		"chain": {"flow"},

		"store": {"flow", "chain"},

		// A real PostgreSQL, for tests only as every *test package.
		"pgtest": {},
		// Servers in Node, and the way out to servers, likewise.
		"nodetest": {},
		"nettest":  {},

		// Tries agents of other people's; it is no part of a server.
		"conform": {"flow", "recovery", "a2a", "mcpclient", "sandbox", "secret", "ident"},

		// The way in from outside, and the parts that join everything.
		"client": {"flow"},
		"show":   {"flow"},
		"cli":    {"client", "server", "demo", "bench", "show", "flow", "definition", "conform", "egress", "examples", "chain", "phrase", "bridge"},
		// It measures what the others make, and writes what they write.
		"bench":        {"server", "engine", "store", "sandbox", "client", "show", "flow", "ident"},
		"demo":         {"server", "client", "show", "flow", "agentkit"},
		"cmd/longstop": {"cli"},
		"cmd/cef":      {"cli"},

		// What users build with and start from.
		"agentkit": {"flow", "a2a", "mcpclient"},
		"examples": {"agentkit"},
	}
	// Services declare what they need of each other as small interfaces.
	for _, name := range services {
		allow[name] = slices.Concat([]string{"flow"}, leaves)
	}
	for _, name := range []string{"api", "mcp", "web"} {
		allow[name] = slices.Concat([]string{"flow"}, leaves, services)
	}
	// Only server knows everything.
	allow["server"] = slices.Concat([]string{"flow", "store", "chain", "client", "api", "mcp", "web"}, leaves, services)
	return allow
}

// outsiders are other people's packages that only some parts may import,
// by the start of their path.
func outsiders() map[string][]string {
	return map[string][]string{
		"database/sql":             {"store", "bench"},
		"modernc.org/":             {"store"},
		"github.com/pressly/goose": {"store"},
		"github.com/jackc/":        {"store", "dispatch", "pgtest", "bench"},
		"github.com/riverqueue/":   {"store", "dispatch"},
		// Our own wire; theirs checks it, in tests.
		"github.com/a2aproject/": {},
	}
}

// partOf names the part of the house that a folder belongs to.
func partOf(folder string) string {
	words := strings.Split(folder, "/")
	switch {
	case words[0] == "internal" && len(words) > 1:
		return words[1]
	case words[0] == "cmd" && len(words) > 1:
		return "cmd/" + words[1]
	default:
		return words[0]
	}
}

// forTests tells whether a folder is a package of helpers for tests, by its
// name: flowtest, enginetest.
func forTests(folder string) bool { return strings.HasSuffix(path.Base(folder), "test") }

// checkImports lists every import that layers or outsiders forbids.
func checkImports(files []source) []string {
	allow, outside := layers(), outsiders()
	var offences []string
	unknown := map[string]bool{}
	for _, f := range files {
		part := partOf(f.folder())
		may, known := allow[part]
		if !known {
			if !unknown[part] {
				offences = append(offences, fmt.Sprintf("%s: %q has no rule: give it a line in layers() of internal/house/imports_test.go that lists what of ours it may import", f.path, part))
			}
			unknown[part] = true
			continue
		}
		for _, spec := range f.ast.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				imported = spec.Path.Value
			}
			if why := forbidden(f.folder(), part, imported, may, outside); why != "" {
				offences = append(offences, fmt.Sprintf("%s: %s", f.at(spec.Pos()), why))
			}
		}
	}
	return offences
}

// forbidden says why a file in folder, of part, may not import a package;
// "" if it may.
func forbidden(folder, part, imported string, may []string, outside map[string][]string) string {
	ours, isOurs := strings.CutPrefix(imported, module+"/")
	if !isOurs {
		if part == "flow" && !forTests(folder) && strings.Contains(strings.Split(imported, "/")[0], ".") {
			return fmt.Sprintf("flow imports %s, may import the standard library only", imported)
		}
		for prefix, parts := range outside {
			if strings.HasPrefix(imported, prefix) && !slices.Contains(parts, part) {
				return fmt.Sprintf("%s imports %s, which only tests and %q may import", part, imported, parts)
			}
		}
		return ""
	}
	if forTests(ours) && !forTests(folder) {
		return fmt.Sprintf("%s imports %s, which is for tests only", part, ours)
	}
	if other := partOf(ours); other != part && !slices.Contains(may, other) {
		return fmt.Sprintf("%s imports %s, may import of ours only %q (declare a small interface where it is needed; server joins the parts)", part, ours, may)
	}
	return ""
}

func TestImports(t *testing.T) {
	t.Parallel()
	report(t, checkImports(goFiles(repository(t), func(s source) bool { return !s.isTest() })))
}

func TestImportsRule(t *testing.T) {
	t.Parallel()
	file := func(imports ...string) string {
		return "package p\n\nimport (\n\"" + strings.Join(imports, "\"\n\"") + "\"\n)\n"
	}
	ours := func(part string) string { return file(module + "/internal/" + part) }
	prove(t, checkImports, []broken{
		{"flow alone", "internal/flow/a.go", file("errors", "encoding/json"), ""},
		{"flow and another's", "internal/flow/a.go", file("github.com/google/uuid"), "standard library only"},
		{"flow and ours", "internal/flow/a.go", ours("expr"), "flow imports internal/expr"},
		{"flow and its helpers for tests", "internal/flow/a.go", ours("flow/flowtest"), "for tests only"},
		{"helpers for tests", "internal/flow/flowtest/a.go", ours("flow"), ""},
		{"PostgreSQL of tests", "internal/store/a.go", ours("pgtest"), "for tests only"},
		{"service and leaf", "internal/engine/a.go", ours("expr"), ""},
		{"service and service", "internal/engine/a.go", ours("step"), "engine imports internal/step"},
		{"service and itself", "internal/step/form/a.go", ours("step"), ""},
		{"service and store", "internal/recovery/a.go", ours("store"), "recovery imports internal/store"},
		{"leaf and service", "internal/a2a/a.go", ours("responder"), "a2a imports internal/responder"},
		{"leaf and leaf not listed", "internal/expr/a.go", ours("egress"), "expr imports internal/egress"},
		{"leaf and leaf listed", "internal/a2a/a.go", ours("egress"), ""},
		{"store and flow", "internal/store/a.go", ours("flow"), ""},
		{"store and service", "internal/store/a.go", ours("dispatch"), "store imports internal/dispatch"},
		{"face and service", "internal/api/a.go", ours("recovery"), ""},
		{"face and store", "internal/api/a.go", ours("store"), "api imports internal/store"},
		{"face and face", "internal/web/a.go", ours("api"), "web imports internal/api"},
		{"server and everything", "internal/server/a.go", file(module+"/internal/store", module+"/internal/api", module+"/internal/engine"), ""},
		{"server and cli", "internal/server/a.go", ours("cli"), "server imports internal/cli"},
		{"cli and server", "internal/cli/a.go", ours("server"), ""},
		{"cli and engine", "internal/cli/a.go", ours("engine"), "cli imports internal/engine"},
		{"client and flow", "internal/client/a.go", ours("flow"), ""},
		{"client and api", "internal/client/a.go", ours("api"), "client imports internal/api"},
		{"demo and agentkit", "internal/demo/a.go", file(module + "/agentkit"), ""},
		{"demo and store", "internal/demo/a.go", ours("store"), "demo imports internal/store"},
		{"main and cli", "cmd/longstop/main.go", ours("cli"), ""},
		{"main and server", "cmd/longstop/main.go", ours("server"), "cmd/longstop imports internal/server"},
		{"example and internal", "examples/x/main.go", ours("a2a"), "examples imports internal/a2a"},
		{"SQL outside of store", "internal/engine/a.go", file("database/sql"), "engine imports database/sql"},
		{"SQL in store", "internal/store/a.go", file("database/sql", "modernc.org/sqlite"), ""},
		{"their A2A in the product", "internal/a2a/a.go", file("github.com/a2aproject/a2a-go/v2/a2a"), "a2a imports github.com/a2aproject"},
		{"no rule", "internal/misc/a.go", file("errors"), `"misc" has no rule: give it a line in layers()`},
		{"no rule at the root", "tools/a.go", file("errors"), `"tools" has no rule`},
	})
}

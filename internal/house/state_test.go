package house

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// checkState lists what makes a package keep hidden state: init functions
// and variables. Allowed are errors, embedded files, the assertion that a
// type has an interface, and a regular expression out of a literal, which
// nothing can change.
func checkState(files []source) []string {
	var offences []string
	for _, f := range files {
		if f.generated() {
			continue
		}
		for _, decl := range f.ast.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.Name == "init" {
					offences = append(offences, f.at(d.Pos())+": func init: build it in a function that somebody calls")
				}
			case *ast.GenDecl:
				if d.Tok == token.VAR {
					offences = append(offences, variables(f, d)...)
				}
			}
		}
	}
	return offences
}

// variables lists the names of a var declaration that are not allowed.
func variables(f source, d *ast.GenDecl) []string {
	var offences []string
	for _, spec := range d.Specs {
		v := spec.(*ast.ValueSpec)
		if embeds(d.Doc) || embeds(v.Doc) {
			continue
		}
		for i, name := range v.Names {
			var value ast.Expr
			if len(v.Values) == len(v.Names) {
				value = v.Values[i]
			}
			if name.Name == "_" || isError(name.Name, value) || isPattern(value) {
				continue
			}
			offences = append(offences, fmt.Sprintf("%s: package variable %s: make it a constant, a function that returns it, or a field of who uses it", f.at(name.Pos()), name.Name))
		}
	}
	return offences
}

// embeds tells whether a comment tells the compiler to embed files. The text
// of a comment group leaves such lines out, so its lines are looked at.
func embeds(doc *ast.CommentGroup) bool {
	if doc == nil {
		return false
	}
	for _, line := range doc.List {
		if strings.HasPrefix(line.Text, "//go:embed ") {
			return true
		}
	}
	return false
}

// isError tells whether a variable is named as an error and made as one.
func isError(name string, value ast.Expr) bool {
	if !strings.HasPrefix(name, "Err") && !strings.HasPrefix(name, "err") {
		return false
	}
	if u, ok := value.(*ast.UnaryExpr); ok && u.Op == token.AND {
		lit, ok := u.X.(*ast.CompositeLit)
		return ok && strings.HasSuffix(called(lit.Type), "Error")
	}
	// flow.Errorf(...).At(...).Right(...) is one too.
	for {
		call, ok := value.(*ast.CallExpr)
		if !ok {
			return false
		}
		switch called(call.Fun) {
		case "errors.New", "fmt.Errorf", "flow.Errorf", "Errorf":
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		value = method.X
	}
}

// isPattern tells whether a value is a regular expression out of a literal.
func isPattern(value ast.Expr) bool {
	call, ok := value.(*ast.CallExpr)
	if !ok || called(call.Fun) != "regexp.MustCompile" || len(call.Args) != 1 {
		return false
	}
	_, literal := call.Args[0].(*ast.BasicLit)
	return literal
}

// called gives name or package.name of an expression, else "".
func called(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok {
			return x.Name + "." + e.Sel.Name
		}
	}
	return ""
}

// checkDoors lists ways out over the standard library's shared HTTP client. In
// the product they go past the guard of egress; in tests, whoever closes an
// httptest.Server breaks them off.
func checkDoors(files []source) []string {
	shared := "http.Get http.Head http.Post http.PostForm http.DefaultClient http.DefaultTransport"
	// What falls back to it where a member is left out.
	needs := map[string]string{"http.Client": "Transport", "websocket.DialOptions": "HTTPClient",
		"mcp.StreamableClientTransport": "HTTPClient", "sdk.StreamableClientTransport": "HTTPClient", "mcp.SSEClientTransport": "HTTPClient"}
	var offences []string
	for _, f := range files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			name, door := "", false
			switch n := n.(type) {
			case *ast.SelectorExpr:
				name = called(n)
				door = name != "" && strings.Contains(" "+shared+" ", " "+name+" ")
			case *ast.CompositeLit:
				name = called(n.Type)
				member := needs[name]
				door = member != "" && !hasMember(n, member)
			}
			if door {
				offences = append(offences, fmt.Sprintf("%s: %s is the client that all share: take the one that egress makes, in tests nettest.Client", f.at(n.Pos()), name))
			}
			return true
		})
	}
	return offences
}

// hasMember tells whether a literal of a struct names a member.
func hasMember(lit *ast.CompositeLit, name string) bool {
	return slices.ContainsFunc(lit.Elts, func(e ast.Expr) bool {
		kv, ok := e.(*ast.KeyValueExpr)
		return ok && called(kv.Key) == name
	})
}

func TestState(t *testing.T) {
	t.Parallel()
	// What tests share may be kept in their helpers as in themselves.
	report(t, checkState(goFiles(repository(t), func(s source) bool { return !s.isTest() && !forTests(s.folder()) })))
}

func TestDoors(t *testing.T) {
	t.Parallel()
	// Agents that use the kit have their own servers and proxies.
	report(t, checkDoors(goFiles(repository(t), func(s source) bool { return s.isTest() || s.folder() != "agentkit" })))
}

func TestStateRule(t *testing.T) {
	t.Parallel()
	at := "internal/p/a.go"
	prove(t, checkState, []broken{
		{"init", at, "package p\nfunc init() {}\n", "a.go:2:1: func init"},
		{"method called init", at, "package p\ntype T int\nfunc (T) init() {}\n", ""},
		{"constant", at, "package p\nconst x = 1\n", ""},
		{"variable", at, "package p\nvar table = map[string]int{}\n", "package variable table"},
		{"variable without value", at, "package p\nvar count int\n", "package variable count"},
		{"variable in a block", at, "package p\nvar (\n\terrX = errors.New(\"x\")\n\tn = 1\n)\n", "package variable n"},
		{"errors", at, "package p\nvar ErrX = errors.New(\"x\")\nvar errY = &flow.Error{}\nvar errZ = flow.Errorf(c, \"z\").Right(\"w\")\n", ""},
		{"error by name only", at, "package p\nvar errors1 = []int{1}\n", "package variable errors1"},
		{"embed", at, "package p\n\n// files are files.\n//\n//go:embed x\nvar files embed.FS\n", ""},
		{"assertion", at, "package p\nvar _ io.Reader = (*T)(nil)\n", ""},
		{"pattern", at, "package p\nvar name = regexp.MustCompile(`^a$`)\n", ""},
		{"pattern out of a variable", at, "package p\nvar name = regexp.MustCompile(x)\n", "package variable name"},
		{"local variable", at, "package p\nfunc f() {\n\tvar x int\n\t_ = x\n}\n", ""},
		{"templ's", "internal/web/a_templ.go", "package p\nvar x = 1\n", ""},
		{"generated", at, "// Code generated by x. DO NOT EDIT.\n\npackage p\n\nvar x = 1\n", ""},
	})
}

func TestDoorsRule(t *testing.T) {
	t.Parallel()
	at := "internal/p/a.go"
	prove(t, checkDoors, []broken{
		{"shared client", at, "package p\nvar c = http.DefaultClient\n", "http.DefaultClient is the client that all share"},
		{"Get", at, "package p\nfunc f() { http.Get(\"x\") }\n", "http.Get is the client that all share"},
		{"own client", at, "package p\nfunc f() { c := http.Client{Transport: t}; c.Get(\"x\") }\n", ""},
		{"own client, shared transport", at, "package p\nfunc f() { c := &http.Client{Timeout: 1}; c.Get(\"x\") }\n", "http.Client is the client"},
		{"dialled over the shared one", "internal/p/a_test.go", "package p\nvar o = websocket.DialOptions{Subprotocols: s}\n", "websocket.DialOptions is the client"},
	})
}

package house

import (
	"fmt"
	"go/ast"
	"go/token"
	"testing"
)

// checkDocs lists packages and exported names without a doc comment. A
// member of a group may share the group's; fields and the methods of an
// interface are the business of their type's comment.
func checkDocs(files []source) []string {
	var offences []string
	told := map[string]bool{}
	first := map[string]source{}
	var order []string
	for _, f := range files {
		if f.ast.Name.Name == "main" || f.generated() {
			continue
		}
		if _, seen := first[f.folder()]; !seen {
			first[f.folder()] = f
			order = append(order, f.folder())
		}
		told[f.folder()] = told[f.folder()] || f.ast.Doc != nil
		for _, decl := range f.ast.Decls {
			for _, name := range undocumented(decl) {
				offences = append(offences, fmt.Sprintf("%s: exported %s has no doc comment", f.at(name.Pos()), name.Name))
			}
		}
	}
	for _, folder := range order {
		if !told[folder] {
			offences = append(offences, first[folder].path+": no file of the package has a package comment")
		}
	}
	return offences
}

// undocumented gives the exported names of a declaration that nothing tells
// about.
func undocumented(decl ast.Decl) []*ast.Ident {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d.Recv.List[0].Type))) {
			return []*ast.Ident{d.Name}
		}
	case *ast.GenDecl:
		if d.Tok == token.IMPORT || d.Doc != nil {
			return nil
		}
		var names []*ast.Ident
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if s.Doc == nil && s.Comment == nil && s.Name.IsExported() {
					names = append(names, s.Name)
				}
			case *ast.ValueSpec:
				for _, name := range s.Names {
					if s.Doc == nil && s.Comment == nil && name.IsExported() {
						names = append(names, name)
					}
				}
			}
		}
		return names
	}
	return nil
}

// receiver gives the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	}
	return ""
}

func TestDocs(t *testing.T) {
	t.Parallel()
	report(t, checkDocs(goFiles(repository(t), func(s source) bool { return !s.isTest() })))
}

func TestDocsRule(t *testing.T) {
	t.Parallel()
	at := "internal/p/a.go"
	told := "// Package p is p.\npackage p\n"
	prove(t, checkDocs, []broken{
		{"package", at, "package p\n", "no file of the package has a package comment"},
		{"main", "cmd/longstop/main.go", "package main\nfunc F() {}\n", ""},
		{"func", at, told + "func F() {}\n", "exported F has no doc comment"},
		{"func told", at, told + "// F is.\nfunc F() {}\n", ""},
		{"func not exported", at, told + "func f() {}\n", ""},
		{"method", at, told + "// T is.\ntype T int\nfunc (t *T) M() {}\n", "exported M"},
		{"method of a generic type", at, told + "// T is.\ntype T[A any] int\nfunc (t *T[A]) M() {}\n", "exported M"},
		{"method of a type not exported", at, told + "type t int\nfunc (t) M() {}\n", ""},
		{"type", at, told + "type T int\n", "exported T"},
		{"type in a group", at, told + "type (\n\t// A is.\n\tA int\n\tB int\n)\n", "exported B"},
		{"constant", at, told + "const C = 1\n", "exported C"},
		{"constants of a told group", at, told + "// The cs.\nconst (\n\tC = 1\n\tD = 2\n)\n", ""},
		{"constant told beside", at, told + "const (\n\tC = 1 // one\n)\n", ""},
		{"variable", at, told + "var ErrX = errors.New(\"x\")\n", "exported ErrX"},
	})
}

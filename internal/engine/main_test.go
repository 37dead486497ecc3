package engine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/longstop-dev/longstop/internal/pgtest"
	"github.com/longstop-dev/longstop/internal/store"
)

// emptyDatabase gives a test a database of its own, of the kind on which
// TestMain has the tests run.
var emptyDatabase func(testing.TB) store.Options

// TestMain runs every test of the engine on each database, also those that
// are written later.
func TestMain(m *testing.M) {
	for _, kind := range []struct {
		name  string
		empty func(testing.TB) store.Options
	}{
		{"SQLite", func(t testing.TB) store.Options { return store.Options{Path: filepath.Join(t.TempDir(), "t.db")} }},
		{"PostgreSQL", func(t testing.TB) store.Options { return store.Options{URL: pgtest.URL(t)} }},
	} {
		fmt.Println("on", kind.name)
		emptyDatabase = kind.empty
		if code := m.Run(); code != 0 {
			fmt.Println("failed on", kind.name)
			os.Exit(code)
		}
	}
}

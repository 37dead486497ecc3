package turn_test

import (
	"flag"
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

// TestMain runs every test of turns on SQLite, and those where the database
// matters on PostgreSQL too: which answers agents give is the same to both.
func TestMain(m *testing.M) {
	flag.Parse()
	chosen := flag.Lookup("test.run").Value.String()
	for _, kind := range []struct {
		name  string
		which string
		empty func(testing.TB) store.Options
	}{
		{"SQLite", chosen, func(t testing.TB) store.Options { return store.Options{Path: filepath.Join(t.TempDir(), "t.db")} }},
		{"PostgreSQL", "Process|AnotherSDK|Ceiling|Job|Fail|Progress|Revoked|Removed|Vault", func(t testing.TB) store.Options { return store.Options{URL: pgtest.URL(t)} }},
	} {
		if chosen != "" && kind.which != chosen {
			break // a person looks for one test
		}
		fmt.Println("on", kind.name)
		emptyDatabase = kind.empty
		if err := flag.Set("test.run", kind.which); err != nil {
			fmt.Println(err)
			os.Exit(2)
		}
		if code := m.Run(); code != 0 {
			fmt.Println("failed on", kind.name)
			os.Exit(code)
		}
	}
}

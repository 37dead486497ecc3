package cli

import (
	"regexp"
	"strings"
	"testing"
)

// Who did something is shown by name where that tells people apart, and by id
// where it does not.
func TestPeopleAreNamed(t *testing.T) {
	t.Parallel()
	dir, s := held(t)
	data := "--data=" + dir
	person := func(name string) (id, key string) {
		out := must(t, "people", "add", name, "--role", "owner", "--with-key", data)
		return regexp.MustCompile(`person_\w+`).FindString(out), regexp.MustCompile(`longstop_\w+`).FindString(out)
	}
	_, ada := person("Ada Lovelace")
	twin, twins := person("Bob")
	person("Bob")
	posing, poses := person("person_0123456789abcdef0123456789abcdef")
	for name, key := range map[string]string{"hers": ada, "his": twins, "its": poses} {
		must(t, "vaults", "create", name, "--endpoint", s.URL(), "--key", key)
	}
	rows := map[string]string{}
	for line := range strings.Lines(must(t, "vaults", "list", data)) {
		f := strings.Fields(line)
		rows[f[1]] = line
	}
	holds(t, rows["hers"], "Ada Lovelace")
	holds(t, rows["his"], twin)
	holds(t, rows["its"], posing)
	holds(t, must(t, "vaults", "show", "hers", data), "owner   Ada Lovelace")
	holds(t, must(t, "audit", "list", "--op", "vaults.create", data), "Ada Lovelace", twin, posing)
	holds(t, must(t, "keys", "list", data), "Ada Lovelace")

	// A key that may not list people sees ids.
	viewer := regexp.MustCompile(`longstop_\w+`).FindString(must(t, "keys", "create", "look", "--role", "viewer", data))
	if out := must(t, "vaults", "list", "--endpoint", s.URL(), "--key", viewer); strings.Contains(out, "Ada") || !strings.Contains(out, "person_") {
		t.Errorf("a viewer sees %q, want ids", out)
	}
}

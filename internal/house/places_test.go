package house

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// places matches what belongs to one machine or one network and not to the
// project: folders that only one machine has, hosts that packages are fetched
// from. The names are put together here so that this file passes too.
func places() *regexp.Regexp {
	folders := []string{"wo" + "rk", "fa" + "rm"}
	hosts := []string{
		"registry" + ".npmjs.org", "registry" + ".yarnpkg.com", "npm.pkg" + ".github.com",
		"proxy" + ".golang.org", "sum" + ".golang.org",
		"deb" + ".debian.org", "security" + ".debian.org", "deb.node" + "source.com",
		"pypi" + ".org",
	}
	for i := range hosts {
		hosts[i] = regexp.QuoteMeta(hosts[i])
	}
	return regexp.MustCompile(`(?:^|[^\w./-])/(?:` + strings.Join(folders, "|") + `)/|\b(?:` + strings.Join(hosts, "|") + `)\b`)
}

// checkPlaces lists every line that names such a place.
func checkPlaces(files []source) []string {
	place := places()
	var offences []string
	for _, f := range files {
		if !place.MatchString(f.text) {
			continue
		}
		for i, line := range strings.Split(f.text, "\n") {
			if found := place.FindString(line); found != "" {
				offences = append(offences, fmt.Sprintf("%s:%d: %q is of one machine or network, not of the project", f.path, i+1, found))
			}
		}
	}
	return offences
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	report(t, checkPlaces(repository(t)))
}

func TestPlacesRule(t *testing.T) {
	t.Parallel()
	prove(t, checkPlaces, []broken{
		{"folder", "a.md", "see\n/wo" + "rk/x\n", "a.md:2:"},
		{"folder in quotes", "a.yaml", "data: \"/fa" + "rm/x\"\n", "a.yaml:1:"},
		{"folder below another", "a.md", "https://example.com/wo" + "rk/x and ./wo" + "rk/x\n", ""},
		{"word", "a.md", "either/or\nwo" + "rk/life\n", ""},
		{"registry in a lock", "package-lock.json", "\"resolved\": \"https://registry" + ".npmjs.org/x\"\n", "package-lock.json:1:"},
		{"proxy", "Makefile", "GOPROXY=https://proxy" + ".golang.org\n", "Makefile:1:"},
		{"other host", "a.md", "https://go.dev/dl\n", ""},
	})
}

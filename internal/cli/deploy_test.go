package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// deployed reads a file of the folder deploy, without its comments.
func deployed(t *testing.T, name string) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../../deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(string(b), "")
	return strings.Split(strings.ReplaceAll(text, "\\\n", " "), "\n")
}

// understood checks that a command line and the environment that goes with it
// are ones that this binary knows.
func understood(t *testing.T, args, environment []string) {
	t.Helper()
	var cmd commands
	parser, err := kong.New(&cmd, kong.Exit(func(int) { t.Errorf("%q ends at once", args) }))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		t.Fatalf("longstop %s: %v", strings.Join(args, " "), err)
	}
	var known []string
	for _, f := range parsed.Flags() {
		known = append(known, f.Envs...)
	}
	for _, assignment := range environment {
		if name, _, _ := strings.Cut(assignment, "="); !slices.Contains(known, name) {
			t.Errorf("longstop %s does not read %s", strings.Join(args, " "), name)
		}
	}
}

func TestTheContainerFileIsTrue(t *testing.T) {
	t.Parallel()
	goMod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	needs := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(goMod))[1]
	var environment []string
	commandsIn := map[string][]string{}
	seen := map[string]bool{}
	for _, l := range deployed(t, "Containerfile") {
		words := strings.Fields(l)
		if len(words) == 0 {
			continue
		}
		seen[words[0]] = true
		switch words[0] {
		case "FROM":
			if image := words[1]; image != "scratch" && !strings.HasSuffix(image, "golang:"+needs) {
				t.Errorf("FROM %s: go.mod needs Go %s", image, needs)
			}
		case "COPY":
			if strings.HasPrefix(words[1], "--from") {
				continue
			}
			for _, path := range words[1 : len(words)-1] {
				if _, err := os.Stat(filepath.Join("../..", path)); err != nil {
					t.Errorf("%s: %v", l, err)
				}
			}
		case "ENV":
			environment = append(environment, words[1:]...)
		case "CMD", "ENTRYPOINT", "HEALTHCHECK":
			var list []string
			if err := json.Unmarshal([]byte(l[strings.Index(l, "["):]), &list); err != nil {
				t.Errorf("%s: %v", l, err)
			}
			commandsIn[words[0]] = list
		case "USER":
			if strings.HasPrefix(words[1], "0") || words[1] == "root" {
				t.Errorf("it runs as %s", words[1])
			}
		}
	}
	for _, want := range []string{"USER", "VOLUME", "EXPOSE", "HEALTHCHECK"} {
		if !seen[want] {
			t.Errorf("no %s", want)
		}
	}
	understood(t, commandsIn["CMD"], environment)
	understood(t, commandsIn["HEALTHCHECK"][1:], nil)
	if commandsIn["HEALTHCHECK"][0] != commandsIn["ENTRYPOINT"][0] {
		t.Errorf("the health check runs %s, the container %s", commandsIn["HEALTHCHECK"][0], commandsIn["ENTRYPOINT"][0])
	}
	copied := func(folder string) bool {
		return slices.ContainsFunc(deployed(t, "Containerfile"), func(l string) bool { return strings.HasPrefix(l, "COPY "+folder+" ") })
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "./cmd/longstop")
	list.Dir = "../.."
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^github.com/longstop-dev/longstop/([a-z]+)`).FindAllStringSubmatch(string(out), -1) {
		if !copied(m[1]) {
			t.Errorf("the binary is built from %s, which is not copied", m[1])
		}
	}
}

func TestTheUnitIsTrue(t *testing.T) {
	t.Parallel()
	var args, environment []string
	settings := map[string]string{}
	for _, l := range deployed(t, "longstop.service") {
		name, value, ok := strings.Cut(l, "=")
		if !ok {
			continue
		}
		settings[name] = value
		switch name {
		case "ExecStart":
			args = strings.Fields(value)[1:]
		case "Environment":
			environment = append(environment, value)
		}
	}
	understood(t, args, environment)
	for name, want := range map[string]string{"NoNewPrivileges": "yes", "ProtectSystem": "strict", "DynamicUser": "yes", "StateDirectory": "longstop", "StateDirectoryMode": "0700"} {
		if settings[name] != want {
			t.Errorf("%s: got %q, want %q", name, settings[name], want)
		}
	}
	if !slices.Contains(environment, "LONGSTOP_DATA=/var/lib/"+settings["StateDirectory"]) {
		t.Errorf("got %v, want the data where the unit may write", environment)
	}
	verify, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("systemd-analyze is not here: what it would say of the unit is not known")
		return
	}
	unit, err := os.ReadFile("../../deploy/longstop.service")
	if err != nil {
		t.Fatal(err)
	}
	file := write(t, "longstop.service", strings.ReplaceAll(string(unit), "/usr/local/bin/longstop", "/bin/true"))
	if out, err := exec.CommandContext(t.Context(), verify, "verify", "--man=no", file).CombinedOutput(); err != nil || strings.Contains(string(out), "longstop.service:") {
		t.Errorf("systemd-analyze: %v\n%s", err, out)
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	dir, s := held(t)
	holds(t, must(t, "health", "--data="+dir), "ok")
	holds(t, must(t, "health", "--endpoint="+s.URL()), "ok")
	sick := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(`{"code":"unavailable","detail":"the database does not answer"}`))
	}))
	t.Cleanup(sick.Close)
	released := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-released }))
	t.Cleanup(silent.Close)
	t.Cleanup(func() { close(released) })
	for want, args := range map[string][]string{
		"no server holds the data folder": {"--data=" + t.TempDir()},
		"the database does not answer":    {"--endpoint=" + sick.URL},
		"has not answered within 50ms":    {"--endpoint=" + silent.URL, "--timeout=50ms"},
		"cannot be reached":               {"--endpoint=http://127.0.0.1:1"},
	} {
		if code, out, errOut := line(t, "", append([]string{"health"}, args...)...); code != exitUnreachable || !strings.Contains(errOut, want) || out != "" {
			t.Errorf("health %v: got %d %s%s, want 4 and %q", args, code, out, errOut, want)
		}
	}
}

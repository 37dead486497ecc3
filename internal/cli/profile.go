package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/longstop-dev/longstop/internal/flow"
)

// profiles is the command line's own file.
type profiles struct {
	Profiles map[string]struct {
		Endpoint string `yaml:"endpoint"`
		Key      string `yaml:"key"`
	} `yaml:"profiles"`
}

// configPath is where the command line's own file is.
func configPath() string {
	if p := os.Getenv("LONGSTOP_CONFIG"); p != "" {
		return p
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "longstop", "config.yaml")
}

// profiled fills in what the profile named by --env says and no flag does.
func (c connection) profiled(ctx context.Context) (connection, error) {
	if c.Env == "" {
		return c, nil
	}
	path := configPath()
	right := "profiles: {" + c.Env + ": {endpoint: https://..., key: longstop_...}}"
	b, err := readFile(ctx, path, maxSmall)
	if errors.Is(err, fs.ErrNotExist) {
		return c, flow.Errorf(flow.CodeInvalid, "there is no file %s with the profile %q", path, c.Env).At("--env").Right(right)
	}
	if err != nil {
		return c, flow.Errorf(flow.CodeInvalid, "%s cannot be read", path).At("--env").Because(err)
	}
	var file profiles
	if err := yaml.Unmarshal(b, &file); err != nil {
		return c, flow.Errorf(flow.CodeInvalid, "%s is not YAML of profiles", path).At("--env").Right(right)
	}
	p, ok := file.Profiles[c.Env]
	if !ok {
		var names []string
		for name := range file.Profiles {
			names = append(names, name)
		}
		slices.Sort(names)
		return c, flow.Errorf(flow.CodeInvalid, "%s has no profile %q", path, c.Env).At("--env").Right("one of: " + strings.Join(names, ", "))
	}
	if c.Endpoint == "" {
		c.Endpoint = p.Endpoint
	}
	if c.Key == "" {
		c.Key = p.Key
	}
	return c, nil
}

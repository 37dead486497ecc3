package cli

import (
	_ "embed"
	"errors"
	"fmt"
	"os"

	"github.com/longstop-dev/longstop/internal/flow"
)

//go:embed workflow.yaml
var starter []byte

type initCmd struct {
	File  string `arg:"" optional:"" default:"workflow.yaml" help:"Where to write."`
	Force bool   `help:"Overwrite a file that is there."`
}

// Help is shown under --help.
func (initCmd) Help() string {
	return `Examples:
  longstop init
  longstop init sync.yaml --force`
}

// Run writes the starter workflow.
func (c *initCmd) Run(a *app) error {
	mode := os.O_CREATE | os.O_WRONLY | os.O_EXCL
	if c.Force {
		mode = os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	}
	f, err := os.OpenFile(c.File, mode, 0o644)
	if errors.Is(err, os.ErrExist) {
		return flow.Errorf(flow.CodeInvalid, "%s is there already", c.File).Right("name another file, or give --force")
	}
	if err != nil {
		return flow.Errorf(flow.CodeInvalid, "%s cannot be written", c.File).Because(err)
	}
	if _, err := f.Write(starter); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "wrote %s\n\nnext:\n  longstop run %s --input '{\"userId\": 42}'\n", c.File, c.File)
	return nil
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Bounds of what is read of a file that somebody names.
const (
	maxDefinition = 1 << 20  // bytes of a workflow, as the server takes it
	maxValue      = 16 << 20 // bytes of a value in a file
	maxSmall      = 1 << 20  // bytes of a key, a profile
)

// readFile reads a file, or a pipe that somebody names, of at most so many
// bytes: what is larger is refused before it is read. Of a pipe into which
// nobody writes it gives up with ctx.
func readFile(ctx context.Context, path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	larger := flow.Errorf(flow.CodeTooLarge, "%s is larger than %d bytes", path, most)
	switch {
	case info.IsDir():
		return nil, flow.Errorf(flow.CodeInvalid, "%s is a folder", path).Right("name a file")
	case info.Mode().IsRegular() && info.Size() > most:
		return nil, larger
	}
	return awaited(ctx, func() ([]byte, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		b, err := io.ReadAll(io.LimitReader(f, most+1))
		if err == nil && int64(len(b)) > most {
			return nil, larger
		}
		return b, err
	})
}

// awaited runs what may wait for somebody else without end, until ctx ends:
// what still waits then is left to the end of the process.
func awaited(ctx context.Context, read func() ([]byte, error)) (b []byte, err error) {
	done := make(chan struct{})
	var got []byte
	var failed error
	go func() {
		defer close(done)
		got, failed = read()
	}()
	select {
	case <-done:
		return got, failed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// unreadable says why a file that somebody named cannot be read.
func unreadable(path string, err error, fix string) error {
	var e *flow.Error
	if errors.As(err, &e) {
		return e
	}
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return flow.Errorf(flow.CodeInvalid, "%s cannot be read: %v", path, err).Right(fix).Because(err)
}

// within says what keeps an entry of a folder from being read as one of its
// files, "" if nothing does: links may lead to files of the same folder only,
// and what is no file at all may never end.
func within(dir, path string) string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "it leads nowhere"
	}
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "its folder cannot be found"
	}
	if rel, err := filepath.Rel(root, real); err != nil || !filepath.IsLocal(rel) {
		return fmt.Sprintf("it is a link out of %s", dir)
	}
	info, err := os.Stat(real)
	if err != nil || !info.Mode().IsRegular() {
		return "it is no regular file"
	}
	return ""
}

package bucket

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/longstop-dev/longstop/internal/flow"
)

// folder is a bucket on this machine. Everything in it is reached below its
// root, so that no link leads out.
type folder struct{ dir string }

// root opens the folder. Its error is that of the file system.
func (f folder) root(create bool) (*os.Root, error) {
	if create {
		if err := os.MkdirAll(f.dir, 0o700); err != nil {
			return nil, err
		}
	}
	return os.OpenRoot(f.dir)
}

func (f folder) failed(err error) error {
	return flow.Errorf(flow.CodeUnavailable, "the bucket's folder %s cannot be used", f.dir).Because(err)
}

// Put writes the object beside its place, syncs it and moves it there.
func (f folder) Put(_ context.Context, key string, body []byte) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if len(body) > MaxObject {
		return tooLarge(key)
	}
	root, err := f.root(true)
	if err != nil {
		return f.failed(err)
	}
	defer root.Close()
	if err := root.MkdirAll(path.Dir(key), 0o700); err != nil {
		return f.failed(err)
	}
	beside := key + "." + rand.Text() + ".new" // of this writer alone
	w, err := root.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return f.failed(err)
	}
	_, err = w.Write(body)
	if err = errors.Join(err, w.Sync(), w.Close()); err == nil {
		err = root.Rename(beside, key)
	}
	if err != nil {
		return f.failed(errors.Join(err, root.Remove(beside)))
	}
	return f.sync(root, path.Dir(key))
}

// sync makes a rename last.
func (f folder) sync(root *os.Root, dir string) error {
	d, err := root.Open(dir)
	if err != nil {
		return f.failed(err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return f.failed(err)
	}
	return nil
}

// Get reads an object.
func (f folder) Get(_ context.Context, key string) ([]byte, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	root, err := f.root(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing(key)
	}
	if err != nil {
		return nil, f.failed(err)
	}
	defer root.Close()
	// Whoever can write the folder may have put something else there: nothing that blocks is opened.
	info, err := root.Stat(key)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, missing(key)
	case err != nil:
		return nil, f.failed(err)
	case !info.Mode().IsRegular():
		return nil, f.failed(errors.New(key + " is no file"))
	case info.Size() > MaxObject:
		return nil, tooLarge(key)
	}
	r, err := root.Open(key)
	if err != nil {
		return nil, f.failed(err)
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, MaxObject+1))
	if err != nil {
		return nil, f.failed(err)
	}
	if len(b) > MaxObject {
		return nil, tooLarge(key)
	}
	return b, nil
}

// Delete removes an object.
func (f folder) Delete(_ context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	root, err := f.root(false)
	if err == nil {
		defer root.Close()
		err = root.Remove(key)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return f.failed(err)
	}
	return nil
}

// List walks the folder of the prefix.
func (f folder) List(ctx context.Context, prefix string) ([]string, error) {
	root, err := f.root(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, f.failed(err)
	}
	defer root.Close()
	found := listing{prefix: prefix}
	err = fs.WalkDir(root.FS(), path.Clean(prefix), func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case d.Type().IsRegular():
			return found.add(filepath.ToSlash(p))
		}
		return nil
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case flow.CodeOf(err) == flow.CodeTooLarge:
		return nil, err
	case err != nil:
		return nil, f.failed(err)
	}
	slices.Sort(found.keys)
	return found.keys, nil
}

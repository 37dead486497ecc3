package secret

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// EnvMasterKey is the environment variable that may hold the master key.
const EnvMasterKey = "LONGSTOP_MASTER_KEY"

// MasterKeyFile is the name of the master key's file in the data folder.
const MasterKeyFile = "master.key"

const keyForm = "32 bytes as 64 hexadecimal digits or as base64, such as `openssl rand -hex 32` prints"

// LoadMasterKey finds the master key: envValue (of LONGSTOP_MASTER_KEY), else
// file (of --master-key-file), else master.key in dataDir, which is made with
// mode 0600 if it is missing and create is set. Both envValue and file is an
// error, as is a file that others than its owner may read. An error names the
// source that is wrong and what would be right, never the value.
//
// A caller should set create only while nothing is sealed yet: a fresh key
// opens no old record.
func LoadMasterKey(envValue, file, dataDir string, create bool) ([]byte, error) {
	switch {
	case envValue != "" && file != "":
		return nil, fmt.Errorf("both %s and --master-key-file are set: give the master key in one place", EnvMasterKey)
	case envValue != "":
		return parseKey(envValue, EnvMasterKey)
	case file != "":
		return readKey(file, "--master-key-file "+file)
	case dataDir == "":
		return nil, fmt.Errorf("there is no master key: set %s or --master-key-file to %s", EnvMasterKey, keyForm)
	}
	path := filepath.Join(dataDir, MasterKeyFile)
	key, err := readKey(path, path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if !create {
		return nil, fmt.Errorf("there is no master key: %s is missing: put it back, or set %s or --master-key-file", path, EnvMasterKey)
	}
	if err := makeKey(path); err != nil {
		return nil, err
	}
	return readKey(path, path) // whoever was first: theirs
}

// makeKey writes a fresh key to path, whole or not at all, and leaves a file
// that is there already.
func makeKey(path string) error {
	fail := func(err error) error { return fmt.Errorf("cannot make the master key %s: %w", path, err) }
	key := make([]byte, KeySize)
	if _, err := rand.Read(key); err != nil {
		return fail(err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".master-*") // mode 0600
	if err != nil {
		return fail(err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.WriteString(hex.EncodeToString(key) + "\n")
	if err == nil {
		err = tmp.Sync()
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fail(err)
	}
	// A link, unlike a rename, never replaces the key of another process.
	if err := os.Link(tmp.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return fail(err)
	}
	return syncFolder(filepath.Dir(path))
}

// syncFolder makes a new name in the folder survive a power cut: a lost key is
// worse than a failed start.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func readKey(path, source string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the master key: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("cannot read the master key: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: a master key is a regular file with %s", source, keyForm)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("%s: others than its owner may use the master key (mode %04o): run `chmod 600 %s`", source, mode, path)
	}
	text, err := io.ReadAll(io.LimitReader(f, 4096))
	if err != nil {
		return nil, fmt.Errorf("cannot read the master key: %w", err)
	}
	return parseKey(string(text), source)
}

// parseKey reads hexadecimal or any base64; source is for the error, which
// must say nothing about the text but its length.
func parseKey(text, source string) ([]byte, error) {
	text = strings.TrimSpace(text)
	if len(text) == 2*KeySize {
		if key, err := hex.DecodeString(text); err == nil {
			return key, nil
		}
	}
	plain := strings.TrimRight(text, "=")
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if key, err := enc.DecodeString(plain); err == nil && len(key) == KeySize {
			return key, nil
		}
	}
	return nil, fmt.Errorf("%s: this is not a master key (%d characters): it must be %s", source, len(text), keyForm)
}

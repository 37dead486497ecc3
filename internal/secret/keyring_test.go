package secret

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func testKeyring(t *testing.T, fill byte) *Keyring {
	t.Helper()
	k, err := NewKeyring(bytes.Repeat([]byte{fill}, KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestSealOpens(t *testing.T) {
	t.Parallel()
	k := testKeyring(t, 1)
	for _, plain := range [][]byte{nil, []byte("s3cr3t-value"), bytes.Repeat([]byte("x"), 64<<10)} {
		sealed, err := k.Seal("ws_1", "api", plain)
		if err != nil {
			t.Fatal(err)
		}
		if len(plain) > 0 && bytes.Contains(sealed, plain) {
			t.Fatal("the sealed record holds the plain text")
		}
		got, err := k.Open("ws_1", "api", sealed)
		if err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("Open = %d bytes, %v; want the %d bytes sealed", len(got), err, len(plain))
		}
	}
}

func TestSealNeverRepeats(t *testing.T) {
	t.Parallel()
	k := testKeyring(t, 1)
	a, _ := k.Seal("ws", "n", []byte("the same value"))
	b, _ := k.Seal("ws", "n", []byte("the same value"))
	if bytes.Equal(a[1+markSize:headerSize], b[1+markSize:headerSize]) || bytes.Equal(a[headerSize:], b[headerSize:]) {
		t.Fatal("two records share salt or ciphertext")
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	k := testKeyring(t, 1)
	sealed, err := k.Seal("ws", "name", []byte("the value"))
	if err != nil {
		t.Fatal(err)
	}
	newer := bytes.Clone(sealed)
	newer[0] = version1 + 1
	tests := []struct {
		name            string
		k               *Keyring
		workspace, item string
		sealed          []byte
		want            error
	}{
		{"another workspace", k, "ws2", "name", sealed, ErrDamaged},
		{"another name", k, "ws", "name2", sealed, ErrDamaged},
		{"the border between both moved", k, "wsn", "ame", sealed, ErrDamaged},
		{"another master key", testKeyring(t, 2), "ws", "name", sealed, ErrOtherKey},
		{"a newer version", k, "ws", "name", newer, ErrVersion},
		{"nothing", k, "ws", "name", nil, ErrDamaged},
		{"the header alone", k, "ws", "name", sealed[:headerSize], ErrDamaged},
		{"half a header", k, "ws", "name", sealed[:10], ErrDamaged},
	}
	for _, tt := range tests {
		if got, err := tt.k.Open(tt.workspace, tt.item, tt.sealed); !errors.Is(err, tt.want) || got != nil {
			t.Errorf("%s: Open = %q, %v; want %v", tt.name, got, err, tt.want)
		}
	}
	for i := range sealed {
		bad := bytes.Clone(sealed)
		bad[i] ^= 0x10
		if got, err := k.Open("ws", "name", bad); err == nil {
			t.Errorf("byte %d turned: Open = %q, want an error", i, got)
		}
	}
}

func TestNewKeyringRefusesAnotherLength(t *testing.T) {
	t.Parallel()
	if _, err := NewKeyring(make([]byte, 16)); err == nil || !strings.Contains(err.Error(), "32 bytes") {
		t.Fatalf("got %v, want an error that names 32 bytes", err)
	}
}

const (
	hexKey  = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff"
	b64Key  = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHv8="
	b64URL  = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHv8"
	wrongIn = "not-a-key-but-still-private"
)

func write(t *testing.T, path, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoadMasterKeyReads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "k"), " "+b64Key+"\n", 0o600)
	data := t.TempDir()
	write(t, filepath.Join(data, MasterKeyFile), hexKey+"\n", 0o400)
	for _, tt := range []struct{ name, env, file, data string }{
		{"hex in the environment", hexKey, "", data},
		{"upper case hex", strings.ToUpper(hexKey), "", ""},
		{"base64", b64Key, "", ""},
		{"base64 for URLs", b64URL, "", ""},
		{"the flag's file", "", file, data},
		{"the data folder's", "", "", data},
	} {
		key, err := LoadMasterKey(tt.env, tt.file, tt.data, false)
		if err != nil || len(key) != KeySize || key[1] != 1 || key[31] != 0xff {
			t.Errorf("%s: got %x, %v; want 0001..ff", tt.name, key, err)
		}
	}
}

func TestLoadMasterKeyRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := write(t, filepath.Join(dir, "open"), hexKey, 0o644)
	group := write(t, filepath.Join(dir, "group"), hexKey, 0o640)
	bad := write(t, filepath.Join(dir, "bad"), wrongIn, 0o600)
	data := t.TempDir()
	write(t, filepath.Join(data, MasterKeyFile), "", 0o600)
	for _, tt := range []struct{ name, env, file, data, want string }{
		{"a wrong value", wrongIn, "", "", "LONGSTOP_MASTER_KEY: this is not a master key (27 characters): it must be 32 bytes"},
		{"a wrong file", "", bad, "", "--master-key-file " + bad + ": this is not a master key"},
		{"both", hexKey, bad, "", "both LONGSTOP_MASTER_KEY and --master-key-file"},
		{"a file that all may read", "", open, "", "chmod 600 " + open},
		{"a file that a group may read", "", group, "", "mode 0640"},
		{"no file", "", filepath.Join(dir, "none"), "", "no such file"},
		{"a folder", "", dir, "", "regular file"},
		{"an empty file of the data folder", "", "", data, "master.key: this is not a master key (0 characters)"},
		{"a missing one that may not be made", "", "", dir, "master.key is missing"},
		{"nowhere", "", "", "", "set LONGSTOP_MASTER_KEY or --master-key-file"},
	} {
		_, err := LoadMasterKey(tt.env, tt.file, tt.data, false)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want it to say %q", tt.name, err, tt.want)
			continue
		}
		if strings.Contains(err.Error(), wrongIn) || strings.Contains(err.Error(), hexKey) {
			t.Errorf("%s: the error shows the value: %v", tt.name, err)
		}
	}
}

func TestLoadMasterKeyMakesOneOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := LoadMasterKey("", "", dir, true)
	if err != nil {
		t.Fatal(err)
	}
	again, err := LoadMasterKey("", "", dir, true)
	if err != nil || !bytes.Equal(first, again) {
		t.Fatalf("second start: %v; the keys are the same: %t", err, bytes.Equal(first, again))
	}
	other, err := LoadMasterKey("", "", t.TempDir(), true)
	if err != nil || bytes.Equal(first, other) {
		t.Fatalf("another folder: %v; want another key", err)
	}
	info, err := os.Stat(filepath.Join(dir, MasterKeyFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v; want 0600", info.Mode(), err)
	}
	left, _ := os.ReadDir(dir)
	if len(left) != 1 {
		t.Fatalf("%d files in the folder, want master.key alone", len(left))
	}
}

package server

import (
	"encoding/json"
	"errors"

	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// folder is the data folder, held by one process at a time.
type folder struct {
	dir  string
	lock *os.File
}

// Holder is what DATA/server.json says of the server that holds the folder:
// how a command on the same machine reaches it.
type Holder struct {
	PID int    `json:"pid"`
	URL string `json:"url"`
	Key string `json:"key"` // holds as long as that process lives
}

// take makes the folder if it is missing and locks it. It answers unavailable,
// naming the holder, if another process has it.
func take(dir string) (*folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, flow.Errorf(flow.CodeUnavailable, "the data folder %s cannot be made", dir).At("--data").
			Right("name a folder that this user may write").Because(err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, flow.Errorf(flow.CodeUnavailable, "the data folder %s cannot be written", dir).At("--data").
			Right("name a folder that this user may write").Because(err)
	}
	if !lockWhole(lock) {
		holder := heldBy(lock)
		lock.Close()
		return nil, flow.Errorf(flow.CodeUnavailable, "the data folder %s is held by %s", dir, holder).At("--data").
			Right("stop that process, name another folder, or talk to the server that runs")
	}
	if err := errors.Join(lock.Truncate(0), writeAt(lock, holderName())); err != nil {
		lock.Close()
		return nil, flow.Errorf(flow.CodeUnavailable, "the data folder %s cannot be written", dir).At("--data").Because(err)
	}
	return &folder{dir: dir, lock: lock}, nil
}

// lockWhole takes the lock, unless somebody holds it for longer than a look at
// it takes.
func lockWhole(lock *os.File) bool {
	for range 10 {
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			return true
		}
		<-time.After(10 * time.Millisecond)
	}
	return false
}

// holderName tells people which process this is.
func holderName() string {
	name := strconv.Itoa(os.Getpid())
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		name += " (longstop " + os.Args[1] + ")"
	}
	return name
}

func writeAt(f *os.File, text string) error {
	_, err := f.WriteAt([]byte(text), 0)
	return err
}

func heldBy(lock *os.File) string {
	b := make([]byte, 128)
	n, _ := lock.ReadAt(b, 0)
	if pid := strings.TrimSpace(string(b[:n])); pid != "" {
		return "process " + pid
	}
	return "another process"
}

func (f *folder) database() string { return filepath.Join(f.dir, "longstop.db") }

// cache is for what can be made again.
func (f *folder) cache() string { return filepath.Join(f.dir, "cache") }

// buckets is where buckets have their folders.
func (f *folder) buckets() string { return filepath.Join(f.dir, "buckets") }

// announce writes server.json, readable by this user only.
func (f *folder) announce(h Holder) error {
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	tmp := filepath.Join(f.dir, "server.json.new")
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(f.dir, "server.json"))
}

// release gives the folder back.
func (f *folder) release() error {
	err := os.Remove(filepath.Join(f.dir, "server.json"))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, f.lock.Close())
}

// FindHolder gives the server that holds the folder, if one does: its lock
// decides, not the file that a killed process left behind.
func FindHolder(dir string) (Holder, bool) {
	var h Holder
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR, 0o600)
	if err != nil {
		return h, false
	}
	defer lock.Close()
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil { // beside others who look
		return h, false // nobody holds it; closing gives it back
	}
	b, err := os.ReadFile(filepath.Join(dir, "server.json"))
	if err != nil || json.Unmarshal(b, &h) != nil || h.URL == "" {
		return h, false
	}
	return h, true
}

//go:build unix

package sandbox

import "syscall"

// mapped is a program's memory: address space for all it may ever use, of
// which the system gives only the pages that are touched. Growing copies
// nothing, and the end gives everything back at once instead of leaving some
// 64 MiB to the next garbage collection.
type mapped struct{ all []byte }

// allocate reserves the memory of one program. When the system has no address
// space left, the memory is an ordinary slice.
func allocate(limit int64) memory {
	all, err := syscall.Mmap(-1, 0, int(limit), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return &sliced{limit: uint64(limit)}
	}
	return &mapped{all: all}
}

// Reallocate gives the first size bytes, or nil beyond the limit.
func (m *mapped) Reallocate(size uint64) []byte {
	if size > uint64(len(m.all)) {
		return nil
	}
	return m.all[:size]
}

// Free does nothing: see memory.
func (m *mapped) Free() {}

// release gives the memory back to the system.
func (m *mapped) release() {
	// The only failure is an argument that never came from Mmap.
	_ = syscall.Munmap(m.all)
	m.all = nil
}

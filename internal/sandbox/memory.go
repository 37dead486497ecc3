package sandbox

import "github.com/tetratelabs/wazero/experimental"

// memory is what one program may use. The WebAssembly runtime calls Free as
// soon as it stops a program but keeps its view of the bytes; so Free does
// nothing, and release is called when nobody can look any more.
type memory interface {
	experimental.LinearMemory
	release()
}

// sliced is a program's memory as a slice that grows by copying.
type sliced struct {
	limit uint64
	bytes []byte
}

// Reallocate grows the memory to size bytes, or gives nil beyond the limit.
func (s *sliced) Reallocate(size uint64) []byte {
	if size > s.limit {
		return nil
	}
	if more := int(size) - len(s.bytes); more > 0 {
		s.bytes = append(s.bytes, make([]byte, more)...)
	}
	return s.bytes[:size]
}

// Free does nothing: see memory.
func (s *sliced) Free() {}

// release leaves the memory to the garbage collector.
func (s *sliced) release() { s.bytes = nil }

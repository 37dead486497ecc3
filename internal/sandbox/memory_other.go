//go:build !unix

package sandbox

// allocate reserves the memory of one program.
func allocate(limit int64) memory { return &sliced{limit: uint64(limit)} }

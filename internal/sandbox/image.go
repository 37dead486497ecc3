package sandbox

import (
	"bytes"
	"errors"
)

// image is the memory of the engine after the prelude, as what differs from
// that of a new instance: most of it never leaves zero, and each page that is
// not written need not be found by the system.
type image struct {
	size    uint32 // bytes of the whole memory
	patches []patch
}

// patch is a run of bytes at its place.
type patch struct {
	at    uint32
	bytes []byte
}

// difference gives the image of after, for instances that begin as fresh.
func difference(fresh, after []byte) image {
	const grain = 4 << 10 // a page of the system, of which a memory is a multiple
	made := image{size: uint32(len(after))}
	open := false
	for at := 0; at < len(after); at += grain {
		now, was := after[at:at+grain], make([]byte, grain)
		if at < len(fresh) {
			was = fresh[at : at+grain]
		}
		if bytes.Equal(now, was) {
			open = false
			continue
		}
		if !open {
			made.patches = append(made.patches, patch{at: uint32(at)})
			open = true
		}
		last := &made.patches[len(made.patches)-1]
		last.bytes = append(last.bytes, now...)
	}
	return made
}

// restore makes the memory of a new instance what the image says.
func (m image) restore(in *instance) error {
	mem := in.module.Memory()
	if have := mem.Size(); m.size > have {
		if _, ok := mem.Grow((m.size - have) / page); !ok {
			return errFull
		}
	}
	for _, p := range m.patches {
		if !mem.Write(p.at, p.bytes) {
			return errors.New("the engine's memory cannot be written")
		}
	}
	return nil
}

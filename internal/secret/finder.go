package secret

import (
	"encoding/binary"
	"slices"
	"strings"
)

// finder looks for many patterns at once. It steps over a text byte by byte,
// asks a bit set whether any pattern starts with the two bytes there, then a
// map which ones start with the eight. No pattern is shorter than that.
type finder struct {
	starts   [1 << 16 / 64]uint64
	patterns map[uint64][]pattern // by their first eight bytes, longest first
	known    map[string]bool
}

type pattern struct{ text, mask string }

func newFinder() *finder {
	return &finder{patterns: map[uint64][]pattern{}, known: map[string]bool{}}
}

// add has text replaced by mask. A pattern that was added before is replaced.
func (f *finder) add(text, mask string) {
	if len(text) < MinLength {
		return
	}
	head := []byte(text[:MinLength])
	two := binary.LittleEndian.Uint16(head)
	f.starts[two/64] |= 1 << (two % 64)
	key := binary.LittleEndian.Uint64(head)
	list := f.patterns[key]
	if f.known[text] {
		list = slices.DeleteFunc(list, func(p pattern) bool { return p.text == text })
	}
	f.known[text] = true
	list = append(list, pattern{text, mask})
	slices.SortStableFunc(list, func(a, b pattern) int { return len(b.text) - len(a.text) })
	f.patterns[key] = list
}

// longest gives the longest pattern that stands in s at i; at least MinLength
// bytes follow there.
func longest[T string | []byte](f *finder, s T, i int) (pattern, bool) {
	two := uint16(s[i]) | uint16(s[i+1])<<8
	if f.starts[two/64]&(1<<(two%64)) == 0 {
		return pattern{}, false
	}
	var key uint64
	for k := range MinLength {
		key |= uint64(s[i+k]) << (8 * k)
	}
	for _, p := range f.patterns[key] {
		if i+len(p.text) <= len(s) && string(s[i:i+len(p.text)]) == p.text {
			return p, true
		}
	}
	return pattern{}, false
}

// any reports whether s has any pattern in it.
func (f *finder) any(s []byte) bool {
	for i := 0; i+MinLength <= len(s); i++ {
		if _, ok := longest(f, s, i); ok {
			return true
		}
	}
	return false
}

// replace gives s with every pattern in it replaced, and whether there was
// one. Where patterns overlap, the whole of what they cover is replaced, by
// the mask of the longest: no tail of a value is left standing.
func replace[T string | []byte](f *finder, s T) (string, bool) {
	var b strings.Builder
	done := 0 // copied up to here
	for i := 0; i+MinLength <= len(s); i++ {
		best, ok := longest(f, s, i)
		if !ok {
			continue
		}
		end := i + len(best.text)
		for j := i + 1; j < end && j+MinLength <= len(s); j++ { // who else starts in what is covered
			p, ok := longest(f, s, j)
			if !ok || j+len(p.text) <= end {
				continue
			}
			end = j + len(p.text)
			if len(p.text) > len(best.text) {
				best = p
			}
		}
		b.WriteString(string(s[done:i]))
		b.WriteString(best.mask)
		done, i = end, end-1
	}
	if done == 0 {
		return "", false
	}
	b.WriteString(string(s[done:]))
	return b.String(), true
}

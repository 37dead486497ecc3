package secret

import (
	"encoding/json"
	"strings"
)

// StripCredentials gives a workflow's input without the credentials in it, at
// any depth: members called access_token, refresh_token, id_token,
// client_secret or authorization, in any case, are left out, and so are
// members whose value is a string that starts with "Bearer ". Such a string
// as an element of an array, or as the whole input, becomes null, so that the
// other elements keep their places. Input that is not valid JSON becomes null.
func StripCredentials(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return raw
	}
	if !json.Valid(raw) {
		return json.RawMessage("null")
	}
	s := stripper{in: raw}
	s.space()
	s.value()
	if !s.changed {
		return raw
	}
	return s.out
}

// stripper copies valid JSON, without the space between tokens, and leaves
// credentials out.
type stripper struct {
	in, out []byte
	i       int
	changed bool
}

func (s *stripper) space() {
	for s.i < len(s.in) && strings.IndexByte(" \t\r\n", s.in[s.i]) >= 0 {
		s.i++
	}
}

// token copies one string, number or name.
func (s *stripper) token() []byte {
	start := s.i
	if s.in[s.i] == '"' {
		s.i = stringEnd(s.in, s.i)
	} else {
		for s.i < len(s.in) && strings.IndexByte(" \t\r\n,]}:", s.in[s.i]) < 0 {
			s.i++
		}
	}
	t := s.in[start:s.i]
	s.space()
	return t
}

// mark copies one byte of punctuation.
func (s *stripper) mark() {
	s.out = append(s.out, s.in[s.i])
	s.i++
	s.space()
}

// value copies a value, or null in place of a credential, and reports whether
// it was one.
func (s *stripper) value() (credential bool) {
	switch s.in[s.i] {
	case '{':
		s.object()
	case '[':
		s.mark()
		for s.in[s.i] != ']' {
			s.value()
			if s.in[s.i] == ',' {
				s.mark()
			}
		}
		s.mark()
	case '"':
		t := s.token()
		if isBearer(string(unquote(t))) {
			s.changed = true
			s.out = append(s.out, "null"...)
			return true
		}
		s.out = append(s.out, t...)
	default:
		s.out = append(s.out, s.token()...)
	}
	return false
}

func (s *stripper) object() {
	s.mark()
	first := true
	for s.in[s.i] != '}' {
		before := len(s.out)
		if !first {
			s.out = append(s.out, ',')
		}
		key := s.token()
		s.out = append(s.out, key...)
		s.mark() // the colon
		named := isCredential(string(unquote(key)))
		if s.value() || named {
			s.out = s.out[:before]
			s.changed = true
		} else {
			first = false
		}
		if s.in[s.i] == ',' {
			s.i++
			s.space()
		}
	}
	s.mark()
}

func isCredential(key string) bool {
	switch strings.ToLower(strings.TrimSpace(key)) {
	case "access_token", "refresh_token", "id_token", "client_secret", "authorization":
		return true
	}
	return false
}

func isBearer(value string) bool {
	const scheme = "bearer "
	value = strings.TrimLeft(value, " \t\r\n")
	return len(value) >= len(scheme) && strings.EqualFold(value[:len(scheme)], scheme)
}

package flow

import (
	"encoding/json"
	"time"
)

// NoticeState says what has become of a [Notice].
type NoticeState string

// The states of a notice.
const (
	NoticeWaiting NoticeState = "waiting" // for its first try or the next
	NoticeSent    NoticeState = "sent"    // the receiver has answered 2xx
	NoticeGivenUp NoticeState = "given_up"
)

// Notice is something that a workspace wants to be told outside: a gate has
// opened, a reminder is due, a run has failed. It is written with the Change
// that it is about, and told at least once.
type Notice struct {
	ID        string // the same for all tries: a receiver knows a repetition by it
	Workspace string
	RunID     string
	Type      string          // of the event that it is about
	Body      json.RawMessage // as it is sent, masked
	State     NoticeState
	Tries     int
	Status    int    // the HTTP status of the last try; 0 if none came
	Error     string // what was wrong with the last try
	CreatedAt time.Time
	DueAt     time.Time // the next try; zero when there is none
	SettledAt time.Time // when it was sent or given up
}

// NoticeTarget is where a workspace's notices go. It lives in memory only.
type NoticeTarget struct {
	URL    string // "" for nowhere
	Secret []byte // the HMAC key; empty for none, and then nothing is sent
}

// Ready reports whether notices can be sent.
func (t NoticeTarget) Ready() bool { return t.URL != "" && len(t.Secret) > 0 }

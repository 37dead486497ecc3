package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// stream follows a log as text/event-stream: each event is a message with its
// seq as id, and after a run's last one comes a message of type end, after
// which a browser should not come back.
func (f *feed) stream(w http.ResponseWriter, r *http.Request) {
	s := &stream{w: w, conn: http.NewResponseController(w), within: f.a.c.Limits.WriteTime}
	// A stream outlives what a request may take to arrive.
	_ = s.conn.SetReadDeadline(time.Time{})
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	err := s.conn.Flush()
	if err == nil {
		err = f.follow(r.Context(), s)
	}
	switch {
	case err == nil:
		_ = s.write("event: end\ndata: {}\n\n")
	case errors.Is(err, errLeaving), s.failed, r.Context().Err() != nil:
	default:
		f.a.problem(r.Context(), f.from.op(), f.by, err)
	}
}

type stream struct {
	w      http.ResponseWriter
	conn   *http.ResponseController
	within time.Duration
	failed bool
}

func (s *stream) send(_ context.Context, r record) error {
	b, err := json.Marshal(r.body)
	if err != nil {
		return err
	}
	return s.write(fmt.Sprintf("id: %d\ndata: %s\n\n", r.seq, b))
}

func (s *stream) rest(context.Context) error { return s.write(": still here\n\n") }

func (s *stream) write(text string) error {
	_ = s.conn.SetWriteDeadline(time.Now().Add(s.within)) // the socket's, by the machine's clock
	_, err := s.w.Write([]byte(text))
	if err == nil {
		err = s.conn.Flush()
	}
	s.failed = err != nil
	return err
}

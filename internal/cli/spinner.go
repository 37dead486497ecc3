package cli

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/show"
)

// spinner turns at the end of what a run has printed while the run works or
// waits. Where there is no terminal it does nothing. Whoever prints writes
// through it, so that the two do not mix.
type spinner struct {
	w   io.Writer
	ink show.Ink

	mu    sync.Mutex
	text  string
	since time.Time
	ended chan struct{}
	wg    sync.WaitGroup
}

func newSpinner(w io.Writer, ink show.Ink) *spinner {
	s := &spinner{w: w, ink: ink, ended: make(chan struct{})}
	if show.Terminal(w) {
		s.wg.Go(s.turn)
	}
	return s
}

// at says what the run does after an event.
func (s *spinner) at(e flow.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Type == flow.EventRunWaiting {
		return // the event before says for what
	}
	s.since = e.At
	switch e.Type {
	case flow.EventStepRecovery:
		s.text = "asking for a mend"
	case flow.EventGateOpened:
		s.text = "waiting for a person"
		if forAgent(e) {
			s.text = "waiting in the inbox for your agent"
		}
	case flow.EventStepSuspended, flow.EventStepRetrying:
		s.text = "waiting"
	case flow.EventRunSucceeded, flow.EventRunFailed, flow.EventRunCancelled:
		s.text = ""
	default:
		s.text = "working"
	}
}

// Write prints in the spinner's place.
func (s *spinner) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wipe()
	return s.w.Write(b)
}

func (s *spinner) wipe() {
	if show.Terminal(s.w) {
		fmt.Fprint(s.w, "\r\x1b[K")
	}
}

// stop ends the spinner and wipes it away.
func (s *spinner) stop() {
	close(s.ended)
	s.wg.Wait()
}

func (s *spinner) turn() {
	tick := time.NewTicker(120 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-s.ended:
			s.mu.Lock()
			s.wipe()
			s.mu.Unlock()
			return
		case <-tick.C:
		}
		s.mu.Lock()
		if s.text != "" {
			s.wipe()
			fmt.Fprintf(s.w, "  %s %s", string([]rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")[n%10]), s.ink.Faint(fmt.Sprintf("%s %s", s.text, time.Since(s.since).Round(time.Second))))
		}
		s.mu.Unlock()
	}
}

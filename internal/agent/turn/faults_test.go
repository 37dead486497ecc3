package turn_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/a2a"
	"github.com/longstop-dev/longstop/internal/agent/turn"
	"github.com/longstop-dev/longstop/internal/egress"
	"github.com/longstop-dev/longstop/internal/flow"
)

// planted is what an agent says that must not get into logs.
const planted = "planted-token-5d1c"

// TestFaultsOfAnAgent: whatever an agent answers, the turn is answered once,
// with a code that says what was wrong.
func TestFaultsOfAnAgent(t *testing.T) {
	t.Parallel()
	working := `{"task":` + task("t-1", "c-1", "WORKING", "") + `}`
	for name, c := range map[string]struct {
		send, get string // what is answered each time
		code      string
		text      string
	}{
		"not JSON":               {send: asBody + "Certainly! Here you go.", code: flow.TurnInvalidResponse},
		"HTML":                   {send: asBody + "<html>hello</html>", code: flow.TurnInvalidResponse},
		"HTML with 502":          {send: asCode + "502 <html>bad gateway</html>", code: flow.TurnUnreachable},
		"401":                    {send: asCode + "401 who are you", code: flow.TurnAuthUnavailable},
		"403":                    {send: asCode + "403 no", code: flow.TurnAuthUnavailable},
		"404":                    {send: asCode + "404 nothing", code: flow.TurnInvalidResponse},
		"408":                    {send: asCode + "408 late", code: flow.TurnUnreachable},
		"429":                    {send: asCode + "429 slowly", code: flow.TurnUnreachable},
		"500":                    {send: asCode + "500 broken", code: flow.TurnUnreachable},
		"an error":               {send: asRPC + `{"code":-32603,"message":"exploded","data":[1,{"x":null}]}`, code: flow.TurnAgentFailed},
		"an error in 400":        {send: asCode + `400 {"jsonrpc":"2.0","id":1,"error":{"code":"-32005","message":"no such content"}}`, code: flow.TurnAgentFailed},
		"null":                   {send: `null`, code: flow.TurnInvalidResponse},
		"neither":                {send: `{}`, code: flow.TurnInvalidResponse},
		"working without an id":  {send: `{"task":{"status":{"state":"TASK_STATE_WORKING"}}}`, code: flow.TurnInvalidResponse},
		"20 MB":                  {send: `{"task":` + task("t-1", "c-1", "COMPLETED", saying(strings.Repeat("x", 20<<20))) + `}`, code: flow.TurnInvalidResponse},
		"2 MB, not fit":          {send: `{"task":` + task("t-1", "c-1", "COMPLETED", saying(strings.Repeat("x", 2<<20))) + `}`, code: flow.TurnInvalidResponse},
		"deep":                   {send: `{"message":{"parts":[{"data":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}]}}`, code: flow.TurnInvalidResponse},
		"another task":           {send: working, get: task("t-2", "c-1", "COMPLETED", saying("not yours")), code: flow.TurnInvalidResponse},
		"another context":        {send: working, get: task("t-1", "c-2", "COMPLETED", saying("not yours")), code: flow.TurnInvalidResponse},
		"a poll gives a message": {send: working, get: `{"message":{"parts":[{"text":"x"}]}}`, code: flow.TurnInvalidResponse},
		"a lost task":            {send: working, get: asRPC + `{"code":-32001,"message":"Task not found"}`, code: flow.TurnAgentFailed},
		"polls of HTML":          {send: working, get: asBody + "<html>", code: flow.TurnInvalidResponse},
		"an unknown state":       {send: working, get: `{"id":"t-1","status":{"state":"DREAMING"}}`, code: flow.TurnTimedOut},
		"no state":               {send: working, get: `{"id":"t-1","status":{}}`, code: flow.TurnTimedOut},
		// What is no fault, in odd forms.
		"a byte order mark":      {send: asBody + "\ufeff" + `{"jsonrpc":"2.0","id":"other","result":{"task":` + task("t-1", "c-1", "COMPLETED", saying("fine")) + `}}`, text: "fine"},
		"a bare task":            {send: task("t-1", "c-1", "COMPLETED", saying("fine")), text: "fine"},
		"numbers for states":     {send: `{"task":{"id":"t-1","status":{"state":3,"message":{"parts":[{"text":"fine"}]}}}}`, text: "fine"},
		"older spelling":         {send: `{"kind":"task","id":"t-1","status":{"state":"completed","message":{"parts":[{"kind":"text","text":"fine"}]}}}`, text: "fine"},
		"our words in history":   {send: `{"task":{"id":"t-1","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"parts":[{"text":"fine"}]}],"history":[{"parts":[{"text":"hi"}]}]}}`, text: "fine"},
		"a state in the data":    {send: `{"message":{"parts":[{"data":{"status":{"state":"TASK_STATE_FAILED"}}},{"text":"fine"}]}}`, text: "fine"},
		"broken UTF-8":           {send: "{\"message\":{\"parts\":[{\"text\":\"fine\"},{\"data\":{\"a\":\"\xff\"}}]}}", text: "fine"},
		"half of a surrogate":    {send: `{"message":{"parts":[{"text":"fine"},{"data":{"a":"\ud800\u0000"}}]}}`, text: "fine"},
		"unreadable parts":       {send: `{"message":{"parts":[7,null,{"text":{}},{"text":"fine"}]}}`, text: "fine"},
		"a task that ends twice": {send: `{"task":` + task("t-1", "c-1", "COMPLETED", saying("fine")) + `}`, get: task("t-1", "c-1", "FAILED", ""), text: "fine"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScripted(t)
			s.send = func(int, call) string { return c.send }
			s.get = func(int, call) string { return c.get }
			b := newBed(t, s.url)
			a := b.answer(b.ask(`{"text":"hi"}`, ``))
			if a.Code != c.code || (a.Error == "") != (c.code == "") || len(a.Error) > 500 {
				t.Errorf("got code %q (%s), want %q", a.Code, a.Error, c.code)
			}
			if a.Text != c.text && c.code == "" || strings.Contains(a.Text, "not yours") {
				t.Errorf("text: %.100q, want %q", a.Text, c.text)
			}
			if sent, _ := s.seen(); c.get != "" && len(sent) != 1 {
				t.Errorf("sent %d times", len(sent))
			}
		})
	}
}

// TestPollsAreRiddenOut: a replica that does not know the task for a moment, a
// gateway that restarts, an agent behind a tunnel that is away for minutes.
func TestPollsAreRiddenOut(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.send = func(int, call) string { return `{"task":` + task("t-1", "c-1", "WORKING", "") + `}` }
	s.get = func(n int, _ call) string {
		switch {
		case n <= 3:
			return asRPC + `{"code":-32001,"message":"Task not found"}`
		case n <= 40:
			return asCode + "503 away"
		case n <= 42:
			return asBody + "<html>"
		}
		return task("t-1", "c-1", "COMPLETED", saying("back"))
	}
	b := newBed(t, s.url)
	if a := b.answer(b.ask(`{"text":"hi"}`, ``)); a.Text != "back" || a.Code != "" {
		t.Errorf("answer: %+v", a)
	}
	if sent, _ := s.seen(); len(sent) != 1 {
		t.Errorf("sent %d times", len(sent))
	}
}

// TestHowManyPollsAreRiddenOut: five in a row of each kind, and a good one
// begins the count again.
func TestHowManyPollsAreRiddenOut(t *testing.T) {
	t.Parallel()
	const lost, page = asRPC + `{"code":-32001,"message":"Task not found"}`, asBody + "<html>"
	good := task("t-1", "c-1", "WORKING", "")
	for name, c := range map[string]struct {
		polls []string // what is answered, in turn; then the task has ended
		code  string
	}{
		"5 lost":             {slices.Repeat([]string{lost}, 5), ""},
		"6 lost":             {slices.Repeat([]string{lost}, 6), flow.TurnAgentFailed},
		"5 lost, good, lost": {slices.Concat(slices.Repeat([]string{lost}, 5), []string{good, lost}), ""},
		"5 pages":            {slices.Repeat([]string{page}, 5), ""},
		"6 pages":            {slices.Repeat([]string{page}, 6), flow.TurnInvalidResponse},
		"5 pages, good, one": {slices.Concat(slices.Repeat([]string{page}, 5), []string{good, page}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScripted(t)
			s.send = func(int, call) string { return `{"task":` + good + `}` }
			s.get = func(n int, _ call) string {
				if n <= len(c.polls) {
					return c.polls[n-1]
				}
				return task("t-1", "c-1", "COMPLETED", saying("back"))
			}
			b := newBed(t, s.url)
			if a := b.answer(b.ask(`{"text":"hi"}`, ``)); a.Code != c.code {
				t.Errorf("got %q (%s), want %q", a.Code, a.Error, c.code)
			}
		})
	}
}

func TestFaultsOfACard(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		card func(s *scripted) string
		code string
	}{
		"10 MB":            {func(s *scripted) string { return s.plainCard(`,"x":"` + strings.Repeat("x", 10<<20) + `"`) }, flow.TurnCardInvalid},
		"HTML":             {func(*scripted) string { return "<html>" }, flow.TurnCardInvalid},
		"no endpoint":      {func(*scripted) string { return `{"name":"a"}` }, flow.TurnCardInvalid},
		"HTTP+JSON only":   {func(s *scripted) string { return strings.Replace(s.plainCard(""), "JSONRPC", "HTTP+JSON", 1) }, flow.TurnCardInvalid},
		"metadata address": {func(s *scripted) string { return strings.Replace(s.plainCard(""), s.url, "http://169.254.169.254", 1) }, flow.TurnUnreachable},
		"a local file":     {func(s *scripted) string { return strings.Replace(s.plainCard(""), s.url, "file://", 1) }, flow.TurnCardInvalid},
		"a user in it": {func(s *scripted) string {
			return strings.Replace(s.plainCard(""), "http://", "http://u:"+planted+"@", 1)
		}, flow.TurnCardInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScripted(t)
			s.card = func() string { return c.card(s) }
			b := newBed(t, s.url)
			a := b.answer(b.ask(`{"text":"hi"}`, ``))
			if a.Code != c.code || a.Error == "" {
				t.Errorf("got %q (%s), want %q", a.Code, a.Error, c.code)
			}
			if sent, _ := s.seen(); len(sent) != 0 {
				t.Errorf("sent %d messages", len(sent))
			}
			if strings.Contains(b.log.String(), planted) || strings.Contains(a.Error, planted) {
				t.Errorf("%s is told: %s, %s", planted, a.Error, b.log.String())
			}
		})
	}
	b := newBed(t, "http://127.0.0.1:1")
	if a := b.answer(b.ask(`{"text":"hi"}`, ``)); a.Code != flow.TurnUnreachable {
		t.Errorf("nobody there: %+v", a)
	}
}

// TestWhatACardsErrorComesTo: what may pass by is tried again as unreachable, a
// signature that does not count is not tried again.
func TestWhatACardsErrorComesTo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err   error
		code  string
		final bool
	}{
		{&a2a.StatusError{Status: http.StatusNotFound}, flow.TurnCardInvalid, false},
		{&a2a.StatusError{Status: http.StatusTooManyRequests}, flow.TurnUnreachable, false},
		{&a2a.StatusError{Status: http.StatusBadGateway}, flow.TurnUnreachable, false},
		{a2a.ErrCard, flow.TurnCardInvalid, false},
		{errors.Join(a2a.ErrCard, a2a.ErrSignature), flow.TurnCardInvalid, true},
	} {
		if code, final := turn.JudgeCard(c.err); code != c.code || final != c.final {
			t.Errorf("%v: got %s, final %t, want %s, %t", c.err, code, final, c.code, c.final)
		}
	}
}

// TestAnAgentThatMoves: a card that is good at first and points elsewhere then.
func TestAnAgentThatMoves(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	b := newBed(t, s.url)
	b.answer(b.ask(`{"text":"one"}`, ``))
	s.set(func() { s.card = func() string { return `{"name":"a"}` } })
	if a := b.answer(b.ask(`{"text":"two"}`, ``)); a.Code != flow.TurnCardInvalid {
		t.Errorf("the second time: %+v", a)
	}
	s.set(func() { s.card = func() string { return s.plainCard("") } })
	if a := b.answer(b.ask(`{"text":"three"}`, ``)); a.Code != "" {
		t.Errorf("and back: %+v", a)
	}
}

// TestAnAgentThatMovesInside: the card, which may be read, comes to point at a
// place of this network, which may not be called.
func TestAnAgentThatMovesInside(t *testing.T) {
	t.Parallel()
	s, inside := newScripted(t), newScripted(t)
	b := newBed(t, s.url, func(b *bed) {
		b.guard = egress.Policy{Allow: []string{strings.TrimPrefix(s.url, "http://")}}
	})
	if a := b.answer(b.ask(`{"text":"one"}`, ``)); a.Code != "" {
		t.Fatalf("at first: %+v", a)
	}
	s.set(func() {
		s.card = func() string { return strings.ReplaceAll(s.plainCard(""), s.url+"/rpc", inside.url+"/rpc") }
	})
	if a := b.answer(b.ask(`{"text":"two"}`, ``)); a.Code != flow.TurnUnreachable {
		t.Errorf("inside: %+v", a)
	}
	if sent, _ := inside.seen(); len(sent) != 0 {
		t.Errorf("it was called: %+v", sent)
	}
}

// TestAnAgentThatStreamsWithoutEnd is cut off at the bound, to a message and to
// a poll.
func TestAnAgentThatStreamsWithoutEnd(t *testing.T) {
	t.Parallel()
	for _, polls := range []bool{false, true} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				fmt.Fprintf(w, `{"name":"a","url":"http://%s/rpc"}`, r.Host)
				return
			}
			body, _ := io.ReadAll(r.Body)
			if polls && strings.Contains(string(body), "SendMessage") {
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":"x","result":{"task":%s}}`, task("t-1", "c-1", "WORKING", ""))
				return
			}
			io.WriteString(w, `{"jsonrpc":"2.0","result":{"x":"`)
			for chunk := strings.Repeat("x", 64<<10); ; {
				if _, err := io.WriteString(w, chunk); err != nil {
					return
				}
			}
		}))
		t.Cleanup(srv.Close)
		b := newBed(t, srv.URL)
		if a := b.answer(b.ask(`{"text":"hi"}`, ``)); a.Code != flow.TurnInvalidResponse || !strings.Contains(a.Error, "too large") {
			t.Errorf("polls %t: %+v", polls, a)
		}
	}
}

// TestAnAgentThatRedirects does not get the message, and nobody else does.
func TestAnAgentThatRedirects(t *testing.T) {
	t.Parallel()
	other := newScripted(t)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			fmt.Fprintf(w, `{"name":"a","url":"http://%s/rpc"}`, r.Host)
			return
		}
		http.Redirect(w, r, other.url+"/rpc", http.StatusTemporaryRedirect)
	}))
	t.Cleanup(srv.Close)
	b := newBed(t, srv.URL)
	if a := b.answer(b.ask(`{"text":"hi"}`, ``)); a.Code == "" {
		t.Errorf("answer: %+v", a)
	}
	if sent, _ := other.seen(); len(sent) != 0 {
		t.Errorf("the message went to %+v", sent)
	}
}

// TestAnAgentThatHangs keeps its own places only: another agent's turn is
// answered while dozens wait.
func TestAnAgentThatHangs(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	hung := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			fmt.Fprintf(w, `{"name":"a","url":"http://%s/rpc"}`, r.Host)
			return
		}
		io.Copy(io.Discard, r.Body)
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(hung.Close)
	t.Cleanup(func() { close(release) })
	s := newScripted(t)
	b := newBed(t, hung.URL)
	other := strings.Replace(agentID, ":helper", ":other", 1)
	if err := b.store.PutAgent(t.Context(), flow.Agent{ID: other, Workspace: "ws", Service: service, Manifest: flow.Manifest{Kind: flow.KindExternal, Card: s.url, Alias: "other",
		AgentID: other, Version: "1.0.0", Scopes: []string{"default"}, IdleTimeout: 60}}, slices.Max[[]string]); err != nil {
		t.Fatal(err)
	}
	b.connect(other)
	for i := range 100 {
		b.ask(`{"text":"hi"}`, fmt.Sprintf(`{"conversation":"%d"}`, i))
	}
	e := b.askOf(other, `{"text":"hi"}`)
	late := time.After(20 * time.Second)
	for len(b.events(flow.EventAgentAnswered, e.ID)) == 0 {
		select {
		case <-b.moved:
		case <-late:
			t.Fatal("the other agent's turn waits behind one that hangs")
		}
	}
}

// TestAVaultThatIsRemoved takes its turns with it.
func TestAVaultThatIsRemoved(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.send = func(int, call) string { return `{"task":` + task("t-1", "c-1", "WORKING", "") + `}` }
	s.get = func(int, call) string { return task("t-1", "c-1", "WORKING", "") }
	b := newBed(t, s.url)
	e := b.ask(`{"text":"hi"}`, ``)
	b.until("a poll", func() bool { _, polled := s.seen(); return len(polled) > 0 })
	if err := b.store.DeleteVault(t.Context(), "ws", e.Vault); err != nil {
		t.Fatal(err)
	}
	b.until("nothing to do", func() bool { return b.d.Waiting() == 0 })
}

// TestAClockThatIsOff: an hour forwards ends no turn that could be rejoined, an
// hour back delays nothing for long.
func TestAClockThatIsOff(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		s := newScripted(t)
		n := 0
		s.send = func(int, call) string { return `{"task":` + task("t-1", "c-1", "WORKING", "") + `}` }
		s.get = func(int, call) string {
			if n++; n < 3 {
				return task("t-1", "c-1", "WORKING", "")
			}
			return task("t-1", "c-1", "COMPLETED", saying("fine"))
		}
		b := newBed(t, s.url)
		e := b.ask(`{"text":"hi"}`, ``)
		b.until("a poll", func() bool { _, polled := s.seen(); return len(polled) > 0 })
		b.clock.Advance(off)
		if a := b.answer(e); a.Text != "fine" {
			t.Errorf("%v: %+v", off, a)
		}
	}
}

package responder

import (
	"context"
	"strings"
	"testing"
	"time"
)

// What an endpoint answers is read in a time that grows with its length, not
// with its square: nothing interrupts the reading, and Close waits for it. What
// takes milliseconds for 4 MiB took more than three minutes.
func TestAModelsAnswerIsReadInLinearTime(t *testing.T) {
	t.Parallel()
	const size = 16 << 20 // what an endpoint may send
	part := `{"type":"text","text":"x"},`
	thoughts, parts := "x"+strings.Repeat("<think></think>", size/15), "["+strings.Repeat(part, size/len(part))+part[:len(part)-1]+"]"
	read := make(chan [2]int, 1)
	go func() { read <- [2]int{len(withoutThoughts(thoughts)), len(contentOf([]byte(parts)))} }()
	select {
	case got := <-read:
		if want := [2]int{1, size/len(part) + 1}; got != want {
			t.Errorf("got texts of %v bytes, want %v", got, want)
		}
	case <-time.After(time.Minute):
		t.Error("after a minute 16 MiB are still being read")
	}
}

func TestThoughtsAreLeftOut(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a<think>b</think>c<think>d</think>e": "ace",
		"a<think>b":                           "a",
		"b</think>c":                          "c",
		"<thought>a</thought><think>b</think>c<reasoning>d": "c",
		`{"a":"<think>"}`: `{"a":"<think>"}`,
	} {
		if got := withoutThoughts(text); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// A caller's deadline frees the model too: what it still reads must not keep
// the server from stopping.
func TestClosingDoesNotWaitForAHostileAnswer(t *testing.T) {
	t.Parallel()
	e := newChatAPI(t, reply200(content("x"+strings.Repeat("<think></think>", (6<<20)/15))))
	m, q, _, _ := model(t, e)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	closed := make(chan struct{})
	go func() {
		_, _ = m.Ask(ctx, q)
		m.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(time.Minute):
		t.Error("a minute after its end an answer of 6 MiB is still being read")
	}
}

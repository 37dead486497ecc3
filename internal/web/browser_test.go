package web_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/server"
)

// chromium gives a tab of a real browser, and what it had to complain about.
func chromium(t *testing.T) (ctx context.Context, complaints func() []string) {
	t.Helper()
	options := []chromedp.ExecAllocatorOption{chromedp.UserDataDir(t.TempDir())}
	for _, flag := range []string{"headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking",
		"disable-component-update", "disable-sync", "disable-dev-shm-usage"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(ctx)
	t.Cleanup(end)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("no Chromium to test with (run ./test, or install chromium): %v", err)
	}
	var mu sync.Mutex
	var said []string
	go func() {
		for m, err := range chromedp.Console(ctx) {
			if err != nil {
				return
			}
			mu.Lock()
			said = append(said, m.String())
			mu.Unlock()
		}
	}()
	return ctx, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return said
	}
}

// TestInABrowser signs in, opens the page of a run that waits for a person,
// and sees it change by itself when the gate is answered. The browser has
// nothing to complain about: no script that the policy stops, no error.
func TestInABrowser(t *testing.T) {
	t.Parallel()
	b := newBed(t, server.Config{})
	b.set("recovery.builtin", "off")
	run := b.start("output: \"{{ steps.user.output }}\"\n")
	b.until(run, flow.EventGateOpened)
	tab, complaints := chromium(t)
	ctx, stop := context.WithTimeout(tab, time.Minute)
	defer stop()
	do := func(what string, steps ...chromedp.Action[chromedp.Void]) {
		t.Helper()
		if err := chromedp.Do(ctx, steps...); err != nil {
			t.Fatalf("%s: %v; the console said %q", what, err, complaints())
		}
	}
	do("open", chromedp.Navigate(b.srv.URL()+"/runs/"+run), chromedp.WaitVisible("#key"))
	do("sign in", chromedp.SendKeys("#key", b.srv.Key()), chromedp.Click("main button"), chromedp.WaitVisible(".waiting"))
	text, err := chromedp.Run(ctx, chromedp.Text("#run"))
	if err != nil {
		t.Fatal(err)
	}
	holds(t, text, "Waits for a person", "Fetch user", "HTTP 404: Not Found")
	gates, err := b.c.Run(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.c.AnswerGate(t.Context(), gates.Gates[0].ID, flow.GateAnswer{Answer: "output", Output: []byte(`{"id":7}`), Reason: "looked it up"}); err != nil {
		t.Fatal(err)
	}
	do("see it change", chromedp.WaitVisible("h1 .status.succeeded"))
	if text, err = chromedp.Run(ctx, chromedp.Text("#run")); err != nil {
		t.Fatal(err)
	}
	holds(t, text, "a person mended a step", "looked it up")
	for _, c := range complaints() {
		if !strings.HasPrefix(c, "debug:") { // advice, not an error
			t.Errorf("the browser complains: %s", c)
		}
	}
}

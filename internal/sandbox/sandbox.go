// Package sandbox runs JavaScript that nobody has checked. A program sees the
// values it is given and the language itself: no files, no network, no
// timers, no modules. It runs in QuickJS compiled to WebAssembly, so that the
// memory it can use and the time it can take have hard ends whatever it does,
// and every program starts from the same untouched memory.
package sandbox

import (
	"context"
	"encoding/json"
	"runtime"
	"sync"
	"time"
)

// Options bound what one program may use. Zero means the default.
type Options struct {
	CacheDir  string        // where the compiled engine is kept between starts; none when empty. It holds machine code: nobody else may write there
	Memory    int64         // bytes of one program, the engine's 2 MiB included; default 64 MiB, at least 8 MiB
	Timeout   time.Duration // of one program from its start, waiting for a place not counted; default 5 s
	MaxOutput int           // bytes of the result as JSON; default 1 MiB
	Parallel  int           // programs at once, the others wait; default one a CPU
}

// Program is JavaScript with what it may see.
type Program struct {
	// Code is the body of an async function in strict mode: `return` gives
	// the result and `await` works.
	Code string
	// Args are the names the code sees, with their values as JSON. Names are
	// plain identifiers. A nil value is null.
	Args map[string]json.RawMessage
}

// Result is what a program gave back.
type Result struct {
	// Value is valid JSON, at most MaxOutput bytes and 500 levels deep; null
	// when the program returned nothing.
	Value json.RawMessage
	// Console holds what the program wrote with console.log and its like: at
	// most 100 lines of 1 KiB, the last of which tells how many more there
	// were. A line may hold anything, secrets and line ends included.
	Console []string
}

// Sandbox runs programs, several at once. It is safe for concurrent use.
type Sandbox struct {
	options Options
	places  chan struct{} // one token for each program that runs
	build   chan struct{} // held by whoever compiles the engine

	mu     sync.Mutex
	engine *engine
	closed bool
}

// New makes a sandbox. It is cheap: the engine is compiled when the first
// program comes, which takes about half a second, or a tenth of that out of
// CacheDir.
func New(o Options) *Sandbox {
	if o.Memory <= 0 {
		o.Memory = 64 << 20
	}
	o.Memory = max(o.Memory, 8<<20)
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Second
	}
	if o.MaxOutput <= 0 {
		o.MaxOutput = 1 << 20
	}
	if o.Parallel <= 0 {
		o.Parallel = runtime.NumCPU()
	}
	return &Sandbox{
		options: o,
		places:  make(chan struct{}, o.Parallel),
		build:   make(chan struct{}, 1),
	}
}

// Run runs a program to its end. What goes wrong inside it, or with its
// bounds, is an *Error; the Result then still holds the console's lines, as
// far as they could be saved. When ctx ends first, waiting for a place
// included, the error wraps the context's.
func (s *Sandbox) Run(ctx context.Context, p Program) (Result, error) {
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	case <-ctx.Done():
		return Result{}, outside(ctx)
	}
	e, err := s.ready(ctx)
	if err != nil {
		return Result{}, err
	}
	return e.run(ctx, p)
}

// ready gives the engine, compiling it when this is the first program. A
// failure is not kept: the next program tries again.
func (s *Sandbox) ready(ctx context.Context) (*engine, error) {
	select {
	case s.build <- struct{}{}:
		defer func() { <-s.build }()
	case <-ctx.Done():
		return nil, outside(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, &Error{Kind: KindInternal, Message: "the sandbox is closed"}
	}
	if s.engine == nil {
		e, err := newEngine(s.options)
		if err != nil {
			return nil, err
		}
		s.engine = e
	}
	return s.engine, nil
}

// Close waits for the programs that run, at most as long as ctx allows, and
// gives the engine's memory back. Later calls of Run fail.
func (s *Sandbox) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	for range cap(s.places) {
		select {
		case s.places <- struct{}{}:
			defer func() { <-s.places }()
		case <-ctx.Done():
			return outside(ctx)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.engine == nil {
		return nil
	}
	e := s.engine
	s.engine = nil
	return e.close(ctx)
}

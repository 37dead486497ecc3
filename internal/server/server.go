package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
)

// Server is a running Longstop.
type Server struct {
	c      Config
	log    *slog.Logger
	folder *folder
	parts  *parts
	http   *http.Server
	url    string
	key    string
	first  string
	served chan error
}

// Start takes the data folder, builds everything, listens and takes up every
// unfinished run. When it returns, the server is ready. Its errors say what
// the operator has to change.
func Start(ctx context.Context, c Config) (*Server, error) {
	c = c.withDefaults()
	c.links = c.PublicURL
	s := &Server{c: c, log: c.Log, served: make(chan error, 1)}
	var err error
	if s.folder, err = take(c.DataDir); err != nil {
		return nil, err
	}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.undo())
	}
	return s, nil
}

func (s *Server) start(ctx context.Context) error {
	// The address is taken first: what fails most often fails before anything is made.
	listener, err := net.Listen("tcp", s.c.Listen)
	if err != nil {
		return flow.Errorf(flow.CodeUnavailable, "cannot listen on %s", s.c.Listen).At("--listen").
			Right("name another host:port; port 0 takes a free one").Because(err)
	}
	s.url = "http://" + reachable(listener.Addr().(*net.TCPAddr))
	if s.c.PublicURL == "" {
		s.c.PublicURL = s.url
	}
	if s.parts, err = build(ctx, s.c, s.folder); err != nil {
		return errors.Join(err, listener.Close())
	}
	if s.first, err = s.found(ctx); err != nil {
		return errors.Join(err, listener.Close())
	}
	if s.key, err = s.parts.access.LocalKey(ctx); err != nil {
		return errors.Join(err, listener.Close())
	}
	if err := s.parts.desk.Start(ctx); err != nil {
		return errors.Join(err, listener.Close())
	}
	if err := s.parts.engine.Start(ctx); err != nil {
		return errors.Join(err, listener.Close())
	}
	if err := s.parts.turns.Start(ctx); err != nil {
		return errors.Join(err, listener.Close())
	}
	s.parts.courier.Start()
	s.http = &http.Server{Handler: s.parts.api, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug)}
	go func() { s.served <- s.http.Serve(listener) }()
	return s.folder.announce(Holder{PID: os.Getpid(), URL: s.url, Key: s.key})
}

// reachable is an address that a client on this machine can dial.
func reachable(a *net.TCPAddr) string {
	host := a.IP.String()
	if a.IP == nil || a.IP.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, strconv.Itoa(a.Port))
}

// URL is where the server listens, as a client on this machine dials it.
func (s *Server) URL() string { return s.url }

// Key is a key of the owner's that holds as long as this process lives.
func (s *Server) Key() string { return s.key }

// FirstKey is the owner's key if this start has made it, else "". It is shown
// once and stored nowhere.
func (s *Server) FirstKey() string { return s.first }

// Engine is what drives the runs, for those who measure it without a network
// between.
func (s *Server) Engine() *engine.Engine { return s.parts.engine }

// DataDir is the data folder.
func (s *Server) DataDir() string { return s.c.DataDir }

// Warnings says what the operator should know of how the server was set up.
func (s *Server) Warnings() []string {
	var out []string
	if s.c.AllowPrivate {
		out = append(out, "outbound calls may reach private and loopback addresses (--allow-private-egress)")
	}
	return out
}

// Wait blocks until serving ends by itself, which is an error, or ctx ends.
// It ends too when the database is no longer this process's to write.
func (s *Server) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.served:
		return err
	case <-s.parts.store.Lost():
		return s.parts.store.Ping(ctx)
	}
}

// Stop takes no more requests, lets steps that execute finish until ctx ends,
// and gives the folder back. Runs that are not finished go on at the next
// start.
func (s *Server) Stop(ctx context.Context) error {
	s.parts.api.Close() // whoever follows a run is sent away, and may come back
	quick, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	err := s.http.Shutdown(quick)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	s.parts.turns.Stop(ctx)
	s.parts.engine.Stop(ctx)
	s.parts.desk.Stop(ctx)
	return errors.Join(err, s.undo())
}

// undo gives back what start has taken.
func (s *Server) undo() error {
	var errs []error
	if s.parts != nil {
		errs = append(errs, s.parts.close())
	}
	return errors.Join(append(errs, s.folder.release())...)
}

// Package nettest is the tests' way out to the servers they start.
//
// The standard library's default transport is for no test: whoever closes an
// [net/http/httptest.Server] closes that one's idle connections too, and a
// call that has just taken one of them breaks off. Nobody closes this one: its
// connections end with their servers.
package nettest

import (
	"net/http"
	"time"
)

var pool = &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: 30 * time.Second}

// Transport is the pool of connections that the tests of a process share.
func Transport() http.RoundTripper { return pool }

// Client is a new client over [Transport].
func Client() *http.Client { return &http.Client{Transport: pool} }

package a2a_test

import (
	"io"
	"log"
)

// quiet is for servers whose handshake errors are the point of the test.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

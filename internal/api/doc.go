// Package api is the REST and WebSocket face: it mounts the operations of the
// services under /v1, and does once for all of them what each call needs:
// say who calls, guard, decode, call, encode, log.
package api

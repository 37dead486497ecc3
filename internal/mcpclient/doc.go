// Package mcpclient calls other people's MCP servers: streamable HTTP, the old
// SSE transport where a server speaks nothing else, and commands over stdio.
//
// A [Pool] keeps one session with each server, so that a call after the first
// costs one round trip. Everything that a server sends is hostile until
// checked: it is bounded in size and depth before it is parsed, calls end with
// their context whatever the server does, and no error holds the value of a
// header.
package mcpclient

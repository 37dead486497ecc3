// Package mcpclient calls other people's MCP servers: streamable HTTP, the old
// SSE transport where a server speaks nothing else, and commands over stdio.
// What a server answers is bounded before it is parsed.
package mcpclient

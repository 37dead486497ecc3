// Package mcp is the face for agents: an MCP server over streamable HTTP.
// Its tools, resources and prompts are the operations of the services under
// the same names, roles and guard as REST.
//
// One path serves two generations of the protocol: 2026-07-28, where a request
// stands alone, and 2025-03-26 to 2025-11-25, where a session is opened first.
// The request says which. No version carries subscriptions or a stream from
// the server: who waits for something reads it again.
package mcp

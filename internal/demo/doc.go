// Package demo is the main job in one process: a Longstop in a temporary
// folder, an unreliable API on loopback, a recovery agent over MCP and one
// over A2A, and workflows that break in every way that matters. Nothing is
// faked but the outsiders: the runs are real.
package demo

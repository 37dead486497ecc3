// Package vault keeps vaults: append-only logs of events with named scopes,
// the connections by which their owners let agents in, and the live feed of
// what is appended. A targeted event begins a turn of its agent, which package
// agent/turn takes on.
package vault

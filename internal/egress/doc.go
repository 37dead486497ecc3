// Package egress is the only door to the outside: every outbound call of
// Longstop's leaves through a [Guard], which refuses private, loopback,
// link-local and metadata addresses at the moment of dialling, so that neither
// a redirect nor a name that resolves anew gets round it.
package egress

// Package recovery is the desk at which failed steps are mended. It freezes a
// failure into a case, asks the responders in their order, checks what they
// answer, and turns it into a verdict that the engine carries out. An answer
// comes from outside and is hostile until every check has passed.
//
// What asks the responders is [Desk]; what may be answered is in action.go and
// guard.go; the order is in ladder.go.
package recovery

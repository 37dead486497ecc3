// Package a2a speaks the A2A protocol to agents that others run: it reads
// their cards, chooses the form they understand, writes strictly and reads
// tolerantly.
//
// The parts, in the order in which a call meets them:
//
//	fetch.go, card.go, security.go   the agent's card: who it is, where, which credential
//	route.go, plan.go, memory.go     which form to send, and what to try when that was not understood
//	write.go                         one message in one dialect, nothing that a strict server refuses
//	client.go, body.go               one HTTP exchange: bounds, credential, typed errors
//	answer.go, part.go, usage.go     a task or a message out of whatever came back
//	send.go, task.go, ask.go         the operations: Send, GetTask, CancelTask, Poll, Ask
//
// Everything that arrives is hostile until it is read: sizes and depths are
// bounded before parsing, error texts are short and never hold the token, and
// a token goes to one origin only.
package a2a

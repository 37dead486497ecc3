// Package client is the Go client of Longstop's REST API. Every error that
// the server answers is an [*Error], which says what is wrong, where, and what
// would be right.
package client

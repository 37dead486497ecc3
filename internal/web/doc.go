// Package web is the face for browsers: pages that the server renders, behind
// a session cookie that an API key opens. It has one page so far: what became
// of a run, read only.
package web

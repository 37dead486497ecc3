// Package flow is Longstop's vocabulary and its rules: workflows, runs, steps,
// failures, cases, gates and the one value, [Change], by which any of them
// moves on. It imports the standard library only, so that every other package
// can speak it.
package flow

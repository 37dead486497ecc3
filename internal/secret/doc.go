// Package secret keeps secrets secret: [Keyring] seals them for the database,
// [Masker] takes their values out of whatever is shown, logged or sent on, and
// [StripCredentials] takes other people's credentials out of a workflow's
// input. Nothing here puts a value into an error.
package secret

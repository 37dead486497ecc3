// Package conform tries a recovery agent with forty failures and says of each
// answer whether Longstop would take it, whether it came in time and whether
// it was safe. Nothing is applied anywhere.
package conform

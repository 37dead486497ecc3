// Package definition turns a workflow as people write it, YAML or JSON, into
// a checked [flow.Definition], and says for everything wrong with it the
// line, the field and what would be right.
//
// Both languages are read into one tree that remembers lines, and mean the
// same: YAML values are what JSON has. A plain YAML scalar is null, true,
// false or a number only where JSON would write it so; dates and yes, no, on
// and off stay texts; what YAML reads as a number and JSON does not (007,
// 1_000, 0x1F, .inf) is refused. Anchors and aliases work within bounds; tags
// other than !!str and merge keys are refused.
//
// A text under if or when in a member that its step type evaluates itself is
// a CEL condition, unless it holds a template; so is $cel there.
package definition

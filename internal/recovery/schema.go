package recovery

import (
	_ "embed" // the schemas
	"encoding/json"
)

// ToolName is the tool that an MCP server must list to be asked.
const ToolName = "diagnose_step_failure"

// SchemaURI is the MCP resource that serves [Contract].
const SchemaURI = "cffbrw://recovery/diagnose-step-failure-schema"

// inputSchema, actionSchema and sampleInput are the published documents.
//
//go:embed schema/input.json
var inputSchema string

//go:embed schema/action.json
var actionSchema string

//go:embed schema/sample.json
var sampleInput string

// Contract is what a recovery agent has to know: the name of its tool, and the
// JSON Schemas (draft 2020-12) of what it is given and of what it answers.
type Contract struct {
	Tool          string          `json:"tool" doc:"The tool that an MCP server must list."`
	Description   string          `json:"description"`
	SchemaVersion int             `json:"schema_version"`
	Input         json.RawMessage `json:"input" doc:"JSON Schema of RecoveryToolInput."`
	Output        json.RawMessage `json:"output" doc:"JSON Schema of RecoveryAction."`
}

// Schema gives the contract of recovery agents.
func Schema() Contract {
	return Contract{
		Tool:          ToolName,
		Description:   "Says what to do about a failed workflow step: takes RecoveryToolInput, answers exactly one RecoveryAction.",
		SchemaVersion: 1,
		Input:         json.RawMessage(inputSchema),
		Output:        json.RawMessage(actionSchema),
	}
}

package flow

// Usage is what a model reports of its work, in tokens.
type Usage struct {
	Input     int64 `json:"inputTokens"`
	Output    int64 `json:"outputTokens"`
	Total     int64 `json:"totalTokens"`
	Estimated bool  `json:"estimated,omitempty"` // at least a part was not reported: four bytes were taken for a token
}

// Add gives the sum of both.
func (u Usage) Add(more Usage) Usage {
	return Usage{Input: u.Input + more.Input, Output: u.Output + more.Output, Total: u.Total + more.Total, Estimated: u.Estimated || more.Estimated}
}

// ModelDay is what the built-in model has used in a workspace on one day.
type ModelDay struct {
	Day   string `json:"day" doc:"In UTC, such as 2026-12-01."`
	Calls int64  `json:"calls"`
	Usage
}

package flow

import "slices"

// RunStatuses lists every status of a run.
func RunStatuses() []RunStatus {
	return []RunStatus{RunQueued, RunRunning, RunWaiting, RunSucceeded, RunFailed, RunCancelled}
}

// StepStatuses lists every status of a step instance.
func StepStatuses() []StepStatus {
	return []StepStatus{StepPending, StepRunning, StepWaiting, StepSucceeded, StepFailed, StepSkipped}
}

// GateStatuses lists every status of a gate.
func GateStatuses() []GateStatus {
	return []GateStatus{GateOpen, GateAnswered, GateExpired, GateClosed}
}

// Next lists the statuses that may follow s; "" stands for a gate that is being
// opened. An open gate may be written again with what has changed of it; one
// that has ended stays as it is.
func (s GateStatus) Next() []GateStatus {
	switch s {
	case "":
		return []GateStatus{GateOpen}
	case GateOpen:
		return []GateStatus{GateOpen, GateAnswered, GateExpired, GateClosed}
	}
	return nil
}

// Can reports whether a gate may go from s to next.
func (s GateStatus) Can(next GateStatus) bool { return slices.Contains(s.Next(), next) }

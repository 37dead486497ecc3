package flow

import "slices"

// RunStatus is where a run stands.
type RunStatus string

// The statuses of a run.
const (
	RunQueued    RunStatus = "queued"    // created, nobody drives it yet
	RunRunning   RunStatus = "running"   // a node drives it
	RunWaiting   RunStatus = "waiting"   // parked on a timer or on someone; costs a row
	RunSucceeded RunStatus = "succeeded" // finished with an output
	RunFailed    RunStatus = "failed"    // finished with an error
	RunCancelled RunStatus = "cancelled" // stopped by someone
)

// Next lists the statuses that may follow s; "" stands for a run that is being
// created, which is driven at once if there is room.
func (s RunStatus) Next() []RunStatus {
	switch s {
	case "":
		return []RunStatus{RunQueued, RunRunning}
	case RunQueued:
		return []RunStatus{RunRunning, RunCancelled}
	case RunRunning:
		return []RunStatus{RunRunning, RunWaiting, RunSucceeded, RunFailed, RunCancelled}
	case RunWaiting:
		return []RunStatus{RunWaiting, RunRunning, RunSucceeded, RunFailed, RunCancelled}
	case RunFailed: // a person's retry goes on in the same run
		return []RunStatus{RunRunning}
	}
	return nil
}

// Can reports whether a run may go from s to next.
func (s RunStatus) Can(next RunStatus) bool { return slices.Contains(s.Next(), next) }

// Finished reports whether a run in s has ended.
func (s RunStatus) Finished() bool {
	return s == RunSucceeded || s == RunFailed || s == RunCancelled
}

// StepStatus is where a step instance stands.
type StepStatus string

// The statuses of a step instance.
const (
	StepPending   StepStatus = "pending"
	StepRunning   StepStatus = "running"
	StepWaiting   StepStatus = "waiting"
	StepSucceeded StepStatus = "succeeded"
	StepFailed    StepStatus = "failed"
	StepSkipped   StepStatus = "skipped"
)

// Next lists the statuses that may follow s. An instance without a row is
// pending.
func (s StepStatus) Next() []StepStatus {
	switch s {
	case StepPending:
		return []StepStatus{StepRunning, StepWaiting, StepSucceeded, StepFailed}
	case StepRunning:
		return []StepStatus{StepRunning, StepWaiting, StepSucceeded, StepFailed, StepSkipped}
	case StepWaiting:
		return []StepStatus{StepWaiting, StepRunning, StepSucceeded, StepFailed, StepSkipped}
	case StepFailed: // a person's retry of the run: again, or on with what it waited for
		return []StepStatus{StepRunning, StepWaiting}
	}
	return nil
}

// Can reports whether a step instance may go from s to next.
func (s StepStatus) Can(next StepStatus) bool { return slices.Contains(s.Next(), next) }

// Done reports whether the run may go on past a step in s.
func (s StepStatus) Done() bool { return s == StepSucceeded || s == StepSkipped }

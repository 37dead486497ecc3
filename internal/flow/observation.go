package flow

// ObservationState says how far an observation has come.
type ObservationState string

// The states. Only asked is not final, and lost only until the same case is
// put before the agent again.
const (
	ObservationAsked    ObservationState = "asked"    // no answer yet
	ObservationAnswered ObservationState = "answered" // Accepted says whether the guard would have let it through
	ObservationFailed   ObservationState = "failed"   // it gave no answer: too late, out of reach, not an action
	ObservationLost     ObservationState = "lost"     // the server ended before the answer came
	ObservationSkipped  ObservationState = "skipped"  // it was not asked: too many were being asked
)

// Observation is what the workspace's own agent would have done about a case,
// where recovery.mode is observe: it is asked beside the run, and nothing of
// its answer is applied. It is kept apart from its case, since the answer may
// come when the case and its run are closed.
type Observation struct {
	State ObservationState `json:"state" enum:"asked,answered,failed,lost,skipped"`
	Asked                  // Accepted: the guard would have let the answer through; Rejection: why not, or why there is none

	// What follows is worked out when the observation is read.
	Verdict  string `json:"verdict,omitempty" enum:"pending,would_mend,would_retry,would_not_mend,would_call,refused,failed,lost,skipped" doc:"What would have come of the answer, as far as that can be known."`
	Compared string `json:"compared,omitempty" enum:"same,different" doc:"With what was applied; absent where nothing was."`
}

// The verdicts on observations that are not states too.
const (
	WouldBePending = "pending"        // no answer yet
	WouldMend      = "would_mend"     // it gives the step an output that passes every check, or it is what was applied and has mended the step
	WouldRetry     = "would_retry"    // the step would have run again, changed: nobody knows with what end
	WouldNotMend   = "would_not_mend" // it is what was applied, and the step failed again
	WouldCall      = "would_call"     // it calls for a person
	WouldBeRefused = "refused"        // the guard refuses it
)

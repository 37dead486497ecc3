package bench

import "time"

// Tiny gives the options with sizes at which every bench takes a moment.
func (o Options) Tiny() Options {
	o.sizes = &sizes{flights: []int{2, 4}, rounds: 1, round: 20 * time.Millisecond, single: 5, mends: 5, gates: 20, resumes: 5,
		quiet: 100 * time.Millisecond, inFlight: 6, finished: 50, reads: 5, starts: 1, attack: 50 * time.Millisecond}
	return o
}

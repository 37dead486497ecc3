package bench

import "time"

// sizes are how much is measured. Full sizes are the bars'.
type sizes struct {
	full     bool
	flights  []int         // runs at a time
	rounds   int           // of value and floor in turn
	round    time.Duration // of one
	single   int           // runs one at a time
	mends    int           // failed steps that an agent mends
	gates    int           // parked
	resumes  int           // gates answered
	quiet    time.Duration // over which idle CPU is counted
	inFlight int           // when the process is killed
	finished int           // runs stored
	reads    int           // of lists and pages
	starts   int           // of the binary
	attack   time.Duration // the sandbox's deadline
}

func fullSizes() *sizes {
	return &sizes{full: true, flights: []int{64, 512}, rounds: 15, round: 1500 * time.Millisecond, single: 3000, mends: 2000, gates: 100_000,
		resumes: 2000, quiet: 20 * time.Second, inFlight: 500, finished: 1_000_000, reads: 300, starts: 5, attack: time.Second}
}

func quickSizes() *sizes {
	return &sizes{flights: []int{64, 512}, rounds: 2, round: time.Second, single: 500, mends: 300, gates: 5000,
		resumes: 300, quiet: 3 * time.Second, inFlight: 100, finished: 20_000, reads: 100, starts: 2, attack: 300 * time.Millisecond}
}

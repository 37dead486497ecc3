package turn

import "time"

// OnRest has f called whenever a step has ended, with the lock held.
func (d *Driver) OnRest(f func()) { d.rest = f }

// JudgeCard is the code of a card that could not be read, and whether another
// try would end in the same way.
func JudgeCard(err error) (code string, final bool) {
	v := judgeCard(err)
	return v.code, v.final
}

// Next is when the first entry that waits is due, and how many are worked at.
func (d *Driver) Next() (due time.Time, waits bool, busy int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.jobs {
		if e.busy {
			busy++
		}
	}
	if len(d.due) == 0 {
		return time.Time{}, false, busy
	}
	return d.due[0].due, true, busy
}

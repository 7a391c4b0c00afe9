package console

import "time"

// Waiting is the state of an object that waits for the lock of another process.
const Waiting = "waiting for another helmsrc"

// Transfer is the progress of the transfer for an object.
type Transfer struct {
	Read, Total int64         // bytes; a negative total is unknown
	Wait        time.Duration // until the next attempt
	RateLimited bool          // by the server
}

// StartRows starts to repaint the live rows, if any; the returned function ends it.
func (c *Console) StartRows() (stop func()) {
	if c.live == nil {
		return func() {}
	}
	return c.live.start()
}

// Expect sets how many objects the run will finish.
func (c *Console) Expect(n int) {
	if c.live != nil {
		c.live.expect(n)
	}
}

// Started shows a row for an object.
func (c *Console) Started(s Subject) {
	if c.live != nil {
		c.live.add(s)
	}
}

// Transferred shows the progress of a transfer in the row of an object.
func (c *Console) Transferred(s Subject, t Transfer) {
	if c.live == nil {
		return
	}
	c.live.update(s, func(row *liveRow) {
		now := c.live.Now()
		row.transfer(t.Read, t.Total, now)
		row.waitUntil, row.rateLimited = now.Add(t.Wait), t.RateLimited
	})
}

// Waiting shows that an object waits for another process, or that its wait has ended.
func (c *Console) Waiting(s Subject, waiting bool) {
	if c.live != nil {
		c.live.update(s, func(row *liveRow) { row.locked = waiting })
	} else if waiting {
		c.Info(s, Waiting+" that works on it")
	}
}

// Finished removes the row of an object. Only an expected object is counted.
func (c *Console) Finished(s Subject, expected, failed bool) {
	if c.live != nil {
		c.live.remove(s, expected, failed)
	}
}

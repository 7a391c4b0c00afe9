package console

import "time"

// Waiting is what a run says that waits for a lock.
const Waiting = "waiting for another helmsrc"

// Transfer is how far the transfer for an object has come.
type Transfer struct {
	Read, Total int64         // bytes; a negative total is not known
	Wait        time.Duration // until the next attempt
	RateLimited bool          // by the server
}

// StartRows begins to repaint the live rows, if there are any; the returned function ends it.
func (c *Console) StartRows() (stop func()) {
	if c.live == nil {
		return func() {}
	}
	return c.live.start()
}

// Expect says how many objects the run will finish.
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

// Transferred shows in the row of an object how far its transfer has come.
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

// Waiting shows that an object waits for another process, or that it does no more.
func (c *Console) Waiting(s Subject, waiting bool) {
	if c.live != nil {
		c.live.update(s, func(row *liveRow) { row.locked = waiting })
	} else if waiting {
		c.Info(s, Waiting+" that works on it")
	}
}

// Finished ends the row of an object. Only one that was expected counts.
func (c *Console) Finished(s Subject, expected, failed bool) {
	if c.live != nil {
		c.live.remove(s, expected, failed)
	}
}

package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/helmsrc/helmsrc/internal/finding"
)

const (
	backoffBase = 500 * time.Millisecond
	backoffCap  = 10 * time.Second

	// maxUnboundedWait is the longest wait that a server may request from a run without a deadline.
	maxUnboundedWait = 10 * time.Minute
)

// Retry runs attempt until it succeeds, fails for good, or may no longer be repeated. After that, a host that does
// not resolve is not looked up again.
func (c *Client) Retry(ctx context.Context, attempt func(context.Context) error) error {
	for n := 1; ; n++ {
		err := attempt(ctx)
		if err == nil || ctx.Err() != nil || !Transient(err) || c.unresolved.has(err) {
			return err
		}
		if n > c.Config.Retries {
			c.unresolved.remember(err)
			return err
		}
		if failed := c.pause(ctx, n, err); failed != nil {
			return failed
		}
	}
}

// pause waits after the nth attempt, which has failed with err. Its error ends the retries.
func (c *Client) pause(ctx context.Context, n int, err error) error {
	wait, asked := requestedWait(err)
	if !asked {
		wait = c.backoff(n)
	}
	left := timeLeft(ctx)
	switch {
	case wait > left && asked:
		return &finding.Problem{
			Text: fmt.Sprintf("%v: not tried again: the server asks to wait %v, longer than the %v that are left",
				err, wait.Round(time.Second), max(left, 0).Round(time.Second)),
			Advice: finding.LongerTimeout,
			Err:    err,
		}
	case wait > left:
		return err
	}
	Report(ctx, Progress{Total: -1, Wait: wait, RateLimited: asked})
	if c.Config.Sleep(ctx, wait) != nil {
		return interrupted(ctx, err)
	}
	return nil
}

// backoff is exponential with full jitter: clients that failed together do not come back together.
func (c *Client) backoff(n int) time.Duration {
	ceiling := backoffCap
	if n < 10 {
		ceiling = min(backoffCap, backoffBase<<(n-1))
	}
	return time.Duration(c.Config.Rand() * float64(ceiling))
}

// timeLeft goes by the real time, as contexts do: the run's clock may stand still.
func timeLeft(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return maxUnboundedWait
	}
	return time.Until(deadline)
}

// interrupted returns the error of a wait that was cut off, with the cause and the error before the wait.
func interrupted(ctx context.Context, err error) error {
	cause := EndOf(ctx) // comes first: an interrupted run is not transient, for any wait
	return &finding.Problem{
		Class: finding.Retryable(Transient(cause)), Text: fmt.Sprintf("%v, after: %v", cause, err), Err: errors.Join(cause, err),
	}
}

// requestedWait returns the wait that the server requested.
func requestedWait(err error) (time.Duration, bool) {
	var e interface{ RetryAfter() time.Duration }
	if !errors.As(err, &e) || e.RetryAfter() <= 0 {
		return 0, false
	}
	return e.RetryAfter(), true
}

// maxRetryAfter keeps arithmetic with absurd values from overflowing.
const maxRetryAfter = 365 * 24 * time.Hour

// RetryAfter returns the wait in the header of this name: seconds or a date. It is 0 if the header is missing or invalid.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	if date, err := http.ParseTime(value); err == nil {
		// The date is by the server's own clock.
		if served, err := http.ParseTime(h.Get("Date")); err == nil {
			now = served
		}
		return min(max(date.Sub(now), 0), maxRetryAfter)
	}
	return 0
}

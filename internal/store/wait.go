package store

import (
	"context"
	"time"
)

// noticeAfter is how long a wait for another process takes before it is reported.
const noticeAfter = time.Second

type waitKey struct{}

// OnWait returns a context that makes the store call f when it has waited for another process for a second, once per
// wait. The waiting goroutine makes the call, during the wait.
func OnWait(ctx context.Context, f func()) context.Context {
	return context.WithValue(ctx, waitKey{}, f)
}

// notice calls the function that OnWait has put into the context.
func notice(ctx context.Context) {
	if f, ok := ctx.Value(waitKey{}).(func()); ok {
		f()
	}
}

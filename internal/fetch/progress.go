package fetch

import (
	"context"
	"time"
)

// Progress is how a transfer gets on.
type Progress struct {
	Read  int64 // bytes of this attempt so far
	Total int64 // -1 if the server does not say

	// Wait is not zero when the attempt has failed and the next one starts after this time.
	Wait time.Duration
	// RateLimited says that the server requested the wait.
	RateLimited bool
}

type progressKey struct{}

// WithProgress makes every transfer under the context report to the function: after each read, and before each wait.
// It is called from the goroutine that transfers, and has to be quick.
func WithProgress(ctx context.Context, report func(Progress)) context.Context {
	return context.WithValue(ctx, progressKey{}, report)
}

// Report calls the context's function, if it has one.
func Report(ctx context.Context, p Progress) {
	if f, ok := ctx.Value(progressKey{}).(func(Progress)); ok && f != nil {
		f(p)
	}
}

type warningKey struct{}

// WithWarnings makes every operation under the context call the function with faults that the user should know of
// although the operation does not fail. It is called from the goroutine of the operation.
func WithWarnings(ctx context.Context, f func(error)) context.Context {
	return context.WithValue(ctx, warningKey{}, f)
}

// Warn passes a warning to the context's function, or drops it without a function.
func Warn(ctx context.Context, warning error) {
	if f, ok := ctx.Value(warningKey{}).(func(error)); ok && f != nil {
		f(warning)
	}
}

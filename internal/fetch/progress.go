package fetch

import (
	"context"
	"time"
)

// Progress is how a transfer gets on.
type Progress struct {
	Attempt int   // 1 for the first one
	Read    int64 // bytes of this attempt so far
	Total   int64 // -1 if the server does not say

	// Wait is not zero when the attempt has failed and the next one starts after this time.
	Wait time.Duration
	// RateLimited says that it was the server who asked for the wait.
	RateLimited bool
}

type progressKey struct{}

// WithProgress makes every transfer under the context report to the function: after each read, and before each wait.
// It is called from the goroutine that transfers, and has to be quick.
func WithProgress(ctx context.Context, report func(Progress)) context.Context {
	return context.WithValue(ctx, progressKey{}, report)
}

// report tells the context's function, if there is one.
func report(ctx context.Context, p Progress) {
	if f, ok := ctx.Value(progressKey{}).(func(Progress)); ok && f != nil {
		f(p)
	}
}

type warningKey struct{}

// WithWarnings makes every operation under the context tell the function what the user should know although it is no
// failure. It is called from the goroutine of the operation.
func WithWarnings(ctx context.Context, f func(error)) context.Context {
	return context.WithValue(ctx, warningKey{}, f)
}

// Warn tells the context's function something that was told before, to somebody else.
func Warn(ctx context.Context, warning error) { warn(ctx, warning) }

func warn(ctx context.Context, warning error) {
	if f, ok := ctx.Value(warningKey{}).(func(error)); ok && f != nil {
		f(warning)
	}
}

package fetch

import (
	"context"
	"fmt"
	"time"
)

// hook is the key of a function for values of a type in a context.
type hook[T any] struct{}

// With makes every operation under the context call the function from its goroutine: with its [Progress], after each read and
// before each wait; with errors that the user should know of although the operation does not fail; or with its decisions, in
// words. The function has to be quick.
func With[T any](ctx context.Context, f func(T)) context.Context {
	return context.WithValue(ctx, hook[T]{}, f)
}

// call calls the context's function, if it has one.
func call[T any](ctx context.Context, value T) {
	if f, ok := ctx.Value(hook[T]{}).(func(T)); ok {
		f(value)
	}
}

// Report reports progress.
func Report(ctx context.Context, p Progress) { call(ctx, p) }

// Warn passes on a warning.
func Warn(ctx context.Context, warning error) { call(ctx, warning) }

// Deciding reports whether the context has a function for decisions. It is for texts that are expensive to make.
func Deciding(ctx context.Context) bool { return ctx.Value(hook[string]{}) != nil }

// Decided passes on a decision. No argument may be secret.
func Decided(ctx context.Context, format string, args ...any) {
	if Deciding(ctx) {
		call(ctx, fmt.Sprintf(format, args...))
	}
}

// Progress is how a transfer gets on.
type Progress struct {
	Read  int64 // bytes of this attempt so far
	Total int64 // -1 if the server does not say

	// Wait is not zero when the attempt has failed and the next one starts after this time.
	Wait time.Duration
	// RateLimited says that the server requested the wait.
	RateLimited bool
}

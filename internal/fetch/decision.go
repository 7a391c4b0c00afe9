package fetch

import (
	"context"
	"fmt"
)

type decisionKey struct{}

// WithDecisions makes every operation under the context call the function with its decisions, in words. It is called
// from the goroutine of the operation.
func WithDecisions(ctx context.Context, f func(string)) context.Context {
	return context.WithValue(ctx, decisionKey{}, f)
}

// Deciding reports whether the context has a function for decisions. It is for texts that are expensive to make.
func Deciding(ctx context.Context) bool { return ctx.Value(decisionKey{}) != nil }

// Decided passes a decision to the context's function, or drops it without a function. No argument may be secret.
func Decided(ctx context.Context, format string, args ...any) {
	if f, ok := ctx.Value(decisionKey{}).(func(string)); ok {
		f(fmt.Sprintf(format, args...))
	}
}

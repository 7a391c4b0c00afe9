package fetch

import (
	"context"
	"fmt"
)

type decisionKey struct{}

// WithDecisions makes every operation under the context call the function with what it has decided, in words. It is
// called from the goroutine of the operation.
func WithDecisions(ctx context.Context, f func(string)) context.Context {
	return context.WithValue(ctx, decisionKey{}, f)
}

// Deciding reports whether decisions are wanted, for those that are expensive to put into words.
func Deciding(ctx context.Context) bool { return ctx.Value(decisionKey{}) != nil }

// Decided passes a decision to the context's function, or drops it if there is none. No argument may be secret.
func Decided(ctx context.Context, format string, args ...any) {
	if f, ok := ctx.Value(decisionKey{}).(func(string)); ok {
		f(fmt.Sprintf(format, args...))
	}
}

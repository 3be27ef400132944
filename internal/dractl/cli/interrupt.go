package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// ContextOfSignals returns the context of a command, which ends when somebody stops the command. What client-go would then
// print of each request that ends with it is dropped: the command says itself that it has stopped.
func ContextOfSignals() (ctx context.Context, stop context.CancelFunc) {
	utilruntime.ErrorHandlers = dropCanceled(utilruntime.ErrorHandlers)
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
}

// dropCanceled returns handlers of errors that are not called for what a context has ended.
func dropCanceled(handlers []utilruntime.ErrorHandler) []utilruntime.ErrorHandler {
	var all []utilruntime.ErrorHandler
	for _, handle := range handlers {
		all = append(all, func(ctx context.Context, err error, message string, keysAndValues ...any) {
			if !errors.Is(err, context.Canceled) {
				handle(ctx, err, message, keysAndValues...)
			}
		})
	}
	return all
}

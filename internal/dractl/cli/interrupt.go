package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// ContextOfSignals returns the context of a command, which ends when somebody stops the command or closes its terminal. What
// client-go would then print of each request that ends with it is dropped: the command says itself that it has stopped.
//
// If nobody reads the output any more, writes fail with EPIPE; SIGPIPE does not end the command before it has cleaned up.
func ContextOfSignals() (ctx context.Context, stop context.CancelFunc) {
	utilruntime.ErrorHandlers = dropCanceled(utilruntime.ErrorHandlers)
	// A caught signal has its default action again in programs that the command starts; an ignored one stays ignored.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	stopping := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		stopping = append(stopping, syscall.SIGHUP)
	}
	ctx, stop = signal.NotifyContext(context.Background(), stopping...)
	stopUnread = stop
	return ctx, stop
}

// stopUnread ends the context of ContextOfSignals when nobody reads what the command tells.
var stopUnread context.CancelFunc = func() {}

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

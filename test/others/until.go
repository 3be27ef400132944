package main

import (
	"context"
	"time"
)

// pollInterval is how often until looks again.
const pollInterval = 200 * time.Millisecond

// until returns when a check finds nothing wrong, or, when the limit is over, with what it
// found last. It is for what kubectl cannot wait for.
func until(ctx context.Context, limit time.Duration, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	again := time.NewTicker(pollInterval)
	defer again.Stop()
	var found error
	for {
		err := check(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() == nil || found == nil:
			// A check that the limit has cut short says nothing of what is wrong.
			found = err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return found
		}
	}
}

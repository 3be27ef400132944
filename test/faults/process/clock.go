//go:build clock

package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// The package time that this is built with adds Jump to what the wall clock says,
// and to nothing else: timers and the time between two readings are the monotonic
// clock's, which no one can set.
func init() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2)
	tell := func() { fmt.Fprintln(os.Stderr, "clock:", time.Now().Format(time.RFC3339), time.Jump.Load()) }
	tell()
	go func() {
		for s := range signals {
			jump := int64(time.Hour / time.Second)
			if s == syscall.SIGUSR2 {
				jump = -jump
			}
			time.Jump.Add(jump)
			tell()
		}
	}()
}

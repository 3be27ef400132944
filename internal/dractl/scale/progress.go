package scale

import (
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	// lineInterval is the time between two lines where stderr is no terminal.
	lineInterval = 5 * time.Second
	widestBar    = 30
)

// progress shows how far something is: a bar on a terminal, otherwise lines.
type progress struct {
	stop func()
}

// startProgress shows the line, and the share that is done, until it is stopped.
func (a *applier) startProgress(line func() string, share func() float64) *progress {
	streams, terminal, began := a.streams, a.terminal, time.Now()
	show, interval := func() { streams.Tell("%s, %.0f s\n", line(), time.Since(began).Seconds()) }, lineInterval
	if terminal != nil {
		interval = pollInterval
		show = func() {
			width, _ := terminal.Size()
			streams.Tell("\r%s\x1b[K", barLine(fmt.Sprintf("%s, %.0f s", line(), time.Since(began).Seconds()), share(), width-1))
		}
		show()
	}
	stopping := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-stopping:
				if terminal != nil {
					streams.Tell("\r\x1b[K")
				}
				return
			case <-tick.C:
				show()
			}
		}
	})
	return &progress{stop: sync.OnceFunc(func() { close(stopping); running.Wait() })}
}

// barLine is a bar with a text, within a width.
func barLine(text string, share float64, width int) string {
	bar := min(width-utf8.RuneCountInString(text)-1, widestBar)
	if bar < 5 {
		runes := []rune(text)
		return string(runes[:max(min(len(runes), width), 0)])
	}
	full := int(max(min(share, 1), 0) * float64(bar))
	return strings.Repeat("█", full) + strings.Repeat("░", bar-full) + " " + text
}

// progressLine says how far a fleet is.
func progressLine(c counts, nodes, pools int) string {
	line := fmt.Sprintf("%d of %d nodes Ready", c.ready, nodes)
	if pools > 0 {
		line += fmt.Sprintf(", %d of %d pools complete", c.pools, pools)
	}
	return line
}

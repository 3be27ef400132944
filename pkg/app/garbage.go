package app

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// How much garbage may accumulate before a collection. A fleet that comes up makes
// much garbage beside a small heap; at Go's default, as much garbage as heap, the
// collector uses a fifth of the CPU. The heap of a large fleet is large, and as
// much garbage beside it would double the memory.
const (
	mostGarbage = 200 // percent of the live heap
	headroom    = 18 << 20
	// leastGarbage keeps the collector from taking all of the CPU for a very large
	// fleet.
	leastGarbage = 15
)

// garbage is how much garbage to leave, in percent of the live heap.
func garbage(live uint64) int {
	return int(min(mostGarbage, max(leastGarbage, 100*headroom/max(1, live))))
}

// limitGarbage keeps the garbage within its limits for as long as the process
// lives, unless the user has set GOGC.
var limitGarbage = sync.OnceFunc(func() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(mostGarbage)
	afterCollections(func() { debug.SetGCPercent(garbage(liveHeap())) })
})

// afterCollections calls f after each collection.
func afterCollections(f func()) {
	// An object without references is collected at once.
	runtime.AddCleanup(new(*byte), func(f func()) {
		f()
		afterCollections(f)
	}, f)
}

// liveHeap is what the last collection found in use.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

package reading

import (
	"math"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// memoryBudget is what the process takes before much of its garbage is collected, in bytes.
	memoryBudget = 200 << 20
	// fastGrowth lets the heap grow to four times what is alive, as long as it is within the budget.
	fastGrowth = 300
	// plainGrowth is Go's default.
	plainGrowth = 100
)

// SetMemoryBudget trades memory for less time in the garbage collector, up to a budget. It is for processes that
// answer one question; ResetMemoryBudget is for those that go on.
func SetMemoryBudget() {
	debug.SetMemoryLimit(memoryBudget)
	debug.SetGCPercent(fastGrowth)
}

// ResetMemoryBudget goes back to Go's defaults if the budget is set. What informers keep alive may come near to it, and the
// garbage collector would run all the time then.
func ResetMemoryBudget() {
	if debug.SetMemoryLimit(-1) == memoryBudget {
		debug.SetMemoryLimit(math.MaxInt64)
		debug.SetGCPercent(plainGrowth)
	}
}

// liftMemoryBudget resets the budget once half of it is alive.
func liftMemoryBudget() {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Uint64() > memoryBudget/2 {
		ResetMemoryBudget()
	}
}

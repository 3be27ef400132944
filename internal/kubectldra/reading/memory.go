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
// answer one question.
func SetMemoryBudget() {
	debug.SetMemoryLimit(memoryBudget)
	debug.SetGCPercent(fastGrowth)
}

// liftMemoryBudget goes back to Go's defaults once half of the budget is alive. The garbage collector would else
// run all the time near the limit.
func liftMemoryBudget() {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if debug.SetMemoryLimit(-1) == memoryBudget && sample[0].Value.Uint64() > memoryBudget/2 {
		debug.SetMemoryLimit(math.MaxInt64)
		debug.SetGCPercent(plainGrowth)
	}
}

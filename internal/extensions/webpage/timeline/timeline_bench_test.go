package timeline

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
)

// tenThousand nodes have 8 devices each, of which Pods have two.
func tenThousand() *fleet {
	f := &fleet{}
	for n := range 10_000 {
		name := fmt.Sprint("node-", n)
		f.nodes = append(f.nodes, name)
		f.publish(name, "gpu.example.com", 8)
		for d := range 2 {
			f.allocate(name, "gpu.example.com", fmt.Sprint("gpu-", d), inventory.Claim{Name: fmt.Sprintf("pod-%d-%d-gpu-x7k2p", n, d), Prepared: true})
		}
	}
	return f
}

// full is a timeline of a fleet that remembers as much as it can.
func (f *fleet) full() *Timeline {
	line := &Timeline{}
	line.Note(f.take(), start)
	for line.begins.Equal(start) {
		for i := range f.allocations {
			f.allocations[i].Claim.Prepared = !f.allocations[i].Claim.Prepared
		}
		line.Note(f.take(), line.ends.Add(time.Second))
	}
	return line
}

// heap is what is in use, in MiB.
func heap() float64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // what is unique goes one round later
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc) / (1 << 20)
}

// BenchmarkMemory is what the timeline of 10,000 nodes takes: at rest, and when it
// remembers as much as it can.
func BenchmarkMemory(b *testing.B) {
	f := tenThousand()
	for b.Loop() {
		before := heap()
		line := &Timeline{}
		line.Note(f.take(), start)
		b.ReportMetric(heap()-before, "MiB-at-rest")
		runtime.KeepAlive(line)
		line = f.full()
		b.ReportMetric(heap()-before, "MiB-full")
		b.ReportMetric(float64(len(line.changes)), "changes")
		runtime.KeepAlive(line)
	}
}

// BenchmarkNote is what it takes to remember one more inventory of 10,000 nodes, of
// which one has changed, besides taking it.
func BenchmarkNote(b *testing.B) {
	f, line := tenThousand(), &Timeline{}
	var taken [2]*inventory.Inventory
	for i := range taken {
		f.allocations[0].Claim.Prepared = i == 1
		taken[i] = f.take()
	}
	b.ReportAllocs()
	for b.Loop() {
		next := line.ends.Add(time.Second)
		line.Note(taken[next.Second()%2], next)
	}
}

// BenchmarkReport is what it takes to tell what has happened where that is as much as
// can be remembered.
func BenchmarkReport(b *testing.B) {
	line := tenThousand().full()
	b.ReportAllocs()
	for b.Loop() {
		line.Report(line.ends)
	}
}

// BenchmarkAt is what it takes to go back to the beginning of the same.
func BenchmarkAt(b *testing.B) {
	line := tenThousand().full()
	b.ReportAllocs()
	for b.Loop() {
		line.At(line.begins)
	}
}

package main

import (
	"fmt"
	"math"

	"github.com/kwok-dra/kwok-dra/test/sidecar"
)

// figures are what was measured at one size of the fleet.
type figures struct {
	Nodes   int `json:"nodes"`
	Devices int `json:"devices"`
	Claims  int `json:"claims"`

	// Memory is what is resident when all is prepared, RestartMemory after a
	// restart, and PeakMemory the most at any time; all in bytes.
	Memory        int64 `json:"memoryBytes"`
	RestartMemory int64 `json:"restartMemoryBytes"`
	PeakMemory    int64 `json:"peakMemoryBytes"`

	// PublishRate is of nodes, PrepareRate of Pods, per second.
	PublishRate float64 `json:"publishedNodesPerSecond"`
	PrepareRate float64 `json:"preparedPodsPerSecond"`

	// Ready is how long a restart takes until the sidecar is ready, in seconds.
	Ready         float64 `json:"restartToReadySeconds"`
	RestartWrites int     `json:"restartWrites"`

	// Heartbeats are those per second while the fleet rests, and HeartbeatCPU what
	// a thousand of them take, in seconds.
	Heartbeats   float64 `json:"heartbeatsPerSecond"`
	HeartbeatCPU float64 `json:"cpuSecondsPerThousandHeartbeats"`
	RestWrites   int     `json:"restWrites"`

	// RenewalCPU is what a thousand renewals of leases take, in seconds, where each
	// replica acts for the nodes whose lease its kwok holds.
	RenewalCPU float64 `json:"cpuSecondsPerThousandRenewals"`
	// SharedMemory is the most that is resident there, in bytes: the leases are kept
	// as well.
	SharedMemory int64 `json:"sharedMemoryBytes"`
}

// sawPeak notes the most memory that a sidecar has had.
func (f *figures) sawPeak(process *sidecar.Process) error {
	peak, err := process.PeakMemory()
	f.PeakMemory = max(f.PeakMemory, peak)
	return err
}

func (f *figures) rested(before, after observation) {
	count := float64(after.heartbeats - before.heartbeats)
	f.Heartbeats = count / after.at.Sub(before.at).Seconds()
	f.HeartbeatCPU = (after.cpu - before.cpu).Seconds() / count * 1000
}

// heartbeatCore is the share of a core that heartbeats of all nodes take, were
// the control plane quick enough for them.
func (f *figures) heartbeatCore() float64 {
	return f.HeartbeatCPU / 1000 * float64(f.Nodes) / heartbeatInterval.Seconds()
}

// renewalCore is the share of a core that renewals of all leases take.
func (f *figures) renewalCore() float64 {
	return f.RenewalCPU / 1000 * float64(f.Nodes) / renewInterval.Seconds()
}

// publishTime and prepareTime are how long all of the fleet takes, in seconds.
func (f *figures) publishTime() float64 { return float64(f.Nodes) / f.PublishRate }
func (f *figures) prepareTime() float64 { return float64(f.Claims) / f.PrepareRate }

// growth is the exponent by which a cost grows from the first size to the last:
// 1 is linear. A cost that is nothing at first grows by nothing known.
func growth(sizes []figures, cost func(*figures) float64) float64 {
	if len(sizes) < 2 {
		return math.NaN()
	}
	first, last := &sizes[0], &sizes[len(sizes)-1]
	return math.Log(cost(last)/cost(first)) / math.Log(float64(last.Nodes)/float64(first.Nodes))
}

// bar is something that is to hold.
type bar struct {
	What string `json:"what"`
	Want string `json:"want"`
	Have string `json:"have"`
	Met  bool   `json:"met"`
}

// The bars. What was measured differs by some percent from run to run, which an
// exponent of linear stands for over a tenfold growth.
const (
	mostMemory    = 200 * sidecar.MiB
	mostReady     = 5.0
	mostHeartbeat = 0.05
	linear        = 1.1
)

// judge holds the figures against the bars: those of the largest fleet, and the
// growth up to it.
func judge(sizes []figures) []bar {
	last := &sizes[len(sizes)-1]
	restarts, rest := 0, 0
	for i := range sizes {
		restarts += sizes[i].RestartWrites
		rest += sizes[i].RestWrites
	}
	bars := []bar{
		{"resident memory, at most at any time", "<= 200 MiB", mebibytes(last.PeakMemory) + " MiB", last.PeakMemory <= mostMemory},
		{"restart to ready", "<= 5 s", fmt.Sprintf("%.1f s", last.Ready), last.Ready <= mostReady},
		{"writes on restarts", "0", fmt.Sprint(restarts), restarts == 0},
		{"writes at rest", "0", fmt.Sprint(rest), rest == 0},
		{"heartbeats of all nodes", "<= 5 % of a core", fmt.Sprintf("%.1f %%", 100*last.heartbeatCore()), last.heartbeatCore() <= mostHeartbeat},
		{"renewals of all leases", "<= heartbeats", fmt.Sprintf("%.1f %%", 100*last.renewalCore()), last.renewalCore() <= last.heartbeatCore()},
	}
	for _, g := range grown {
		exponent := growth(sizes, g.cost)
		bars = append(bars, bar{"growth of " + g.what, "linear or better", fmt.Sprintf("nodes^%.2f", exponent), exponent <= linear})
	}
	return bars
}

// grown are the costs that are to grow no faster than the fleet.
var grown = []struct {
	what string
	cost func(*figures) float64
}{
	{"resident memory", func(f *figures) float64 { return float64(f.PeakMemory) }},
	{"restart to ready", func(f *figures) float64 { return f.Ready }},
	{"heartbeats of all nodes", (*figures).heartbeatCore},
	{"renewals of all leases", (*figures).renewalCore},
	{"time to publish all nodes", (*figures).publishTime},
	{"time to prepare all Pods", (*figures).prepareTime},
}

func mebibytes(bytes int64) string {
	return fmt.Sprint((bytes + sidecar.MiB - 1) / sidecar.MiB)
}

package main

import (
	"fmt"
	"math"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
	"github.com/kwok-dra/kwok-dra/test/perf/pairs"
)

// figures are what was measured at one size of the fleet.
type figures struct {
	Nodes   int `json:"nodes"`
	Devices int `json:"devices"`
	Claims  int `json:"claims"`

	Memory  memory  `json:"memory"`
	Restart restart `json:"restart"`
	Writing writing `json:"writing"`
	Rest    rest    `json:"rest"`
	Leases  leases  `json:"leases"`
	Asking  asking  `json:"asking"`
}

// memory is what is resident when all is prepared, and after a restart, and the
// most at any time; all in bytes.
type memory struct {
	Prepared  int64 `json:"preparedBytes"`
	Restarted int64 `json:"restartedBytes"`
	Peak      int64 `json:"peakBytes"`
}

// sawPeak notes the most memory that a sidecar has had.
func (m *memory) sawPeak(process *sidecar.Process) error {
	peak, err := process.PeakMemory()
	m.Peak = max(m.Peak, peak)
	return err
}

// restart is how long it takes until the sidecar is ready, and until plain
// informers have listed the same objects, in seconds, each time that they took
// turns.
type restart struct {
	Ready  []float64 `json:"readySeconds"`
	Plain  []float64 `json:"plainInformersSeconds"`
	Writes int       `json:"writes"`
}

func (r *restart) medianReady() float64       { return pairs.Of(r.Ready).Median }
func (r *restart) medianPlain() float64       { return pairs.Of(r.Plain).Median }
func (r *restart) readyToPlain() pairs.Spread { return pairs.Ratio(r.Ready, r.Plain) }

// writing is how many nodes are published and Pods prepared per second, the CPU that
// a sidecar has taken from its start until all are, in seconds, and the share of a
// core that this is.
type writing struct {
	PublishRate float64 `json:"publishedNodesPerSecond"`
	PrepareRate float64 `json:"preparedPodsPerSecond"`
	PublishCPU  float64 `json:"publishCPUSeconds"`
	PrepareCPU  float64 `json:"prepareCPUSeconds"`
	PublishCore float64 `json:"publishCore"`
	PrepareCore float64 `json:"prepareCore"`
}

// rest is how many heartbeats per second there are while the fleet rests, and what
// a thousand of them take, in seconds.
type rest struct {
	Heartbeats   float64 `json:"heartbeatsPerSecond"`
	HeartbeatCPU float64 `json:"cpuSecondsPerThousandHeartbeats"`
	Writes       int     `json:"writes"`
}

func (r *rest) addWatched(before, after observation) {
	count := float64(after.heartbeats - before.heartbeats)
	r.Heartbeats = count / after.at.Sub(before.at).Seconds()
	r.HeartbeatCPU = (after.cpu - before.cpu).Seconds() / count * 1000
}

// leases is of a replica at rest that acts for the nodes whose lease its kwok holds:
// the share of a core that it takes to list the leases again and again, and the most
// that is resident, in bytes.
type leases struct {
	Core float64 `json:"core"`
	Peak int64   `json:"peakBytes"`
}

// asking is how long somebody waits who looks at the fleet, in seconds: until the page itself is there, until it has all
// devices, and until kwok-dractl status has printed the fleet. Its memory is the most of a sidecar with the page open, in
// bytes.
type asking struct {
	Page    float64 `json:"pageSeconds"`
	Devices float64 `json:"pageWithDevicesSeconds"`
	Status  float64 `json:"statusSeconds"`
	Peak    int64   `json:"peakBytesWithPage"`
}

// heartbeatCore is the share of a core that heartbeats of all nodes take, were
// the control plane quick enough for them.
func (f *figures) heartbeatCore() float64 {
	return f.Rest.HeartbeatCPU / 1000 * float64(f.Nodes) / heartbeatInterval.Seconds()
}

// leasedCore is the same where kwok's leases carry the heartbeats, its default.
func (f *figures) leasedCore() float64 {
	return f.Rest.HeartbeatCPU / 1000 * float64(f.Nodes) / leasedInterval.Seconds()
}

// growthExponent is the exponent by which a cost grows from the first size to the last:
// 1 is linear. A cost that is nothing at first grows by nothing known.
func growthExponent(sizes []figures, cost func(*figures) float64) float64 {
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
// exponent of linear stands for over a tenfold growth. No bar is an absolute time:
// that says more of the machine, and of what else it does, than of kwok-dra.
const (
	mostMemory  = 256 * sidecar.MiB
	mostAtLarge = 1024 * sidecar.MiB
	leastRate   = 0.8 // of a fleet of the usual size
	mostRestart = 1.3
	mostLeased  = 0.01
	linear      = 1.1
)

// checkLimits holds the figures against the bars: those of the largest fleet, and the
// growth up to it.
func checkLimits(sizes []figures) []bar {
	last := &sizes[len(sizes)-1]
	restarted, rested := 0, 0
	for i := range sizes {
		restarted += sizes[i].Restart.Writes
		rested += sizes[i].Rest.Writes
	}
	ratio := last.Restart.readyToPlain()
	memory, leased := last.memoryLimit(), mostLeased*max(1, float64(last.Nodes)/usualFleet)
	bars := []bar{
		{"resident memory, at most at any time", "<= " + formatMebibytes(memory) + " MiB", formatMebibytes(last.Memory.Peak) + " MiB", last.Memory.Peak <= memory},
		{"restart to ready, of what plain informers take", "<= 1.3", ratio.String(), ratio.Median <= mostRestart},
		{"writes on restarts", "0", fmt.Sprint(restarted), restarted == 0},
		{"writes at rest", "0", fmt.Sprint(rested), rested == 0},
		{"at rest with kwok's leases", fmt.Sprintf("<= %.1f %% of a core", 100*leased), fmt.Sprintf("%.1f %%", 100*last.leasedCore()), last.leasedCore() <= leased},
		{"lists of all leases", "<= heartbeats", fmt.Sprintf("%.1f %%", 100*last.Leases.Core), last.Leases.Core <= last.heartbeatCore()},
	}
	if first := &sizes[0]; last.Nodes > usualFleet {
		bars = append(bars,
			rateBar("publish", last.Writing.PublishRate/first.Writing.PublishRate, last.Writing.PublishCore),
			rateBar("prepare", last.Writing.PrepareRate/first.Writing.PrepareRate, last.Writing.PrepareCore))
	}
	for _, g := range grown {
		exponent := growthExponent(sizes, g.cost)
		bars = append(bars, bar{"growth of " + g.what, "linear or better", fmt.Sprintf("nodes^%.2f", exponent), exponent <= linear})
	}
	return bars
}

// rateBar tells how busy kwok-dra was as well: where it was not, the control plane is the limit.
func rateBar(what string, ofUsual, core float64) bar {
	have := fmt.Sprintf("%.2f, with %.0f %% of a core", ofUsual, 100*core)
	return bar{what + ", of the rate at 10,000 nodes", ">= 0.8", have, ofUsual >= leastRate}
}

// grown are the costs that are to grow no faster than the fleet.
var grown = []struct {
	what string
	cost func(*figures) float64
}{
	{"resident memory", func(f *figures) float64 { return float64(f.Memory.Peak) }},
	{"heartbeats of all nodes", (*figures).heartbeatCore},
	{"lists of all leases", func(f *figures) float64 { return f.Leases.Core }},
	{"CPU to publish nodes", func(f *figures) float64 { return f.Writing.PublishCPU }},
	{"CPU to prepare Pods", func(f *figures) float64 { return f.Writing.PrepareCPU }},
}

// memoryLimit is the most memory that a fleet of this size may take.
func (f *figures) memoryLimit() int64 {
	if f.Nodes > usualFleet {
		return mostAtLarge
	}
	return mostMemory
}

func formatMebibytes(bytes int64) string {
	return fmt.Sprint((bytes + sidecar.MiB - 1) / sidecar.MiB)
}

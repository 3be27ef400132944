package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// linearFleet costs ten times as much at ten times the size, and meets all bars.
func linearFleet() []figures {
	var sizes []figures
	for _, nodes := range []int{1000, 3000, 10000} {
		sizes = append(sizes, figures{
			Nodes: nodes, Devices: 8 * nodes, Claims: 2 * nodes,
			Memory:  memory{Prepared: int64(nodes) * 15 << 10, Restarted: int64(nodes) * 14 << 10, Peak: int64(nodes) * 20 << 10},
			Restart: restart{Ready: []float64{4, 5, 6}, Plain: []float64{4, 4, 4}},
			Writing: writing{PublishRate: 300, PrepareRate: 90, PublishCPU: float64(nodes) / 1000, PrepareCPU: float64(nodes) / 500},
			Rest:    rest{Heartbeats: 200, HeartbeatCPU: 0.1},
			Leases:  leases{Core: float64(nodes) * 0.04 / 10_000},
		})
	}
	return sizes
}

func TestRested(t *testing.T) {
	t.Parallel()
	f := figures{Nodes: 1000}
	noon := time.Unix(1e9, 0)
	f.Rest.addWatched(observation{noon, time.Second, 100}, observation{noon.Add(10 * time.Second), 3 * time.Second, 500})
	require.InDelta(t, 40, f.Rest.Heartbeats, 1e-9)
	require.InDelta(t, 5, f.Rest.HeartbeatCPU, 1e-9, "2 s for 400")
	require.InDelta(t, 0.005*1000/22.5, f.heartbeatCore(), 1e-9)
}

func TestGrowth(t *testing.T) {
	t.Parallel()
	sizes := linearFleet()
	require.InDelta(t, 1, growthExponent(sizes, func(f *figures) float64 { return float64(f.Memory.Peak) }), 1e-9)
	require.InDelta(t, 0, growthExponent(sizes, func(f *figures) float64 { return f.Rest.HeartbeatCPU }), 1e-9)
	require.InDelta(t, 2, growthExponent(sizes, func(f *figures) float64 { return float64(f.Nodes) * float64(f.Nodes) }), 1e-9)
}

func TestJudge(t *testing.T) {
	t.Parallel()
	r := report{Bars: checkLimits(linearFleet())}
	require.Zero(t, r.countMissed(), "%v", r.Bars)
	for missed, spoil := range map[string]func(sizes []figures){
		"resident memory, at most at any time":           func(sizes []figures) { sizes[2].Memory.Peak = mostMemory + 1 },
		"restart to ready, of what plain informers take": func(sizes []figures) { sizes[2].Restart.Ready[1] = 5.3 },
		"writes on restarts":                             func(sizes []figures) { sizes[0].Restart.Writes = 1 },
		"writes at rest":                                 func(sizes []figures) { sizes[1].Rest.Writes = 1 },
		"at rest with kwok's leases":                     func(sizes []figures) { sizes[2].Rest.HeartbeatCPU = 0.7 },
		"lists of all leases":                            func(sizes []figures) { sizes[2].Leases.Core = 0.05 },
		"growth of resident memory":                      func(sizes []figures) { sizes[0].Memory.Peak = 10 * sidecar.MiB },
		"growth of CPU to publish nodes":                 func(sizes []figures) { sizes[2].Writing.PublishCPU = 15 },
	} {
		sizes := linearFleet()
		spoil(sizes)
		r := report{Bars: checkLimits(sizes)}
		for _, b := range r.Bars {
			if b.What == missed {
				require.False(t, b.Met, missed)
			}
		}
		require.Positive(t, r.countMissed(), missed)
	}
}

// TestLargeFleet: a fleet of more than 10,000 nodes may take more memory, and must be as quick.
func TestLargeFleet(t *testing.T) {
	t.Parallel()
	require.Equal(t, []int{10_000, 65_000}, (&scale{nodes: 65_000}).fleetSizes())
	sizes := []figures{linearFleet()[2], linearFleet()[2]}
	sizes[1].Nodes, sizes[1].Memory.Peak = 65_000, 1000*sidecar.MiB
	sizes[1].Writing.PublishCPU, sizes[1].Writing.PrepareCPU = 65, 130
	sizes[1].Writing.PublishRate, sizes[1].Leases.Core = 250, 0.2
	r := report{Bars: checkLimits(sizes)}
	require.Zero(t, r.countMissed(), "%v", r.Bars)
	sizes[1].Writing.PublishRate, sizes[1].Memory.Peak = 230, 1025*sidecar.MiB
	r = report{Bars: checkLimits(sizes)}
	require.Equal(t, 2, r.countMissed(), "%v", r.Bars)
}

func TestReport(t *testing.T) {
	t.Parallel()
	sizes := linearFleet()
	sizes[2].Rest.Writes = 3
	r := report{Machine: "a machine", Sizes: sizes, Bars: checkLimits(sizes)}
	var out bytes.Buffer
	require.NoError(t, r.printTables(&out, "there.svg"))
	for _, want := range []string{
		`(?m)^nodes +1000 +3000 +10000$`,
		`(?m)^resident memory, at most at any time, MiB +20 +59 +196$`,
		`(?m)^at rest without leases: heartbeats of all nodes every 22\.5 s, % of a core +0\.4 +1\.3 +4\.4$`,
		`(?m)^writes at rest +0 +3 +NOT MET$`,
		`(?m)^plain informers to list the same, s +4\.00 +4\.00 +4\.00$`,
		`(?m)^restart to ready, of what plain informers take +<= 1\.3 +1\.25 \(1\.00\.\.1\.50\) +met$`,
		`a machine`, `there\.svg`,
	} {
		require.Regexp(t, want, out.String())
	}
	encoded, err := json.Marshal(r)
	require.NoError(t, err)
	var again report
	require.NoError(t, json.Unmarshal(encoded, &again))
	require.Equal(t, r, again)
}

// TestPlot: each panel has a point for each size.
func TestPlot(t *testing.T) {
	t.Parallel()
	svg := drawPlot(report{Machine: "a <machine>", Sizes: linearFleet()})
	require.Equal(t, len(panels), strings.Count(svg, "<g "))
	require.Equal(t, 3*len(panels), strings.Count(svg, "<circle "))
	require.Contains(t, svg, "a &lt;machine&gt;; dashed: the bar")
}

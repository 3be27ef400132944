package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/sidecar"
)

// linearFleet costs ten times as much at ten times the size, and meets all bars.
func linearFleet() []figures {
	var sizes []figures
	for _, nodes := range []int{1000, 3000, 10000} {
		sizes = append(sizes, figures{
			Nodes: nodes, Devices: 8 * nodes, Claims: 2 * nodes,
			Memory: int64(nodes) * 15 << 10, RestartMemory: int64(nodes) * 14 << 10, PeakMemory: int64(nodes) * 20 << 10,
			PublishRate: 300, PrepareRate: 90, Ready: float64(nodes) / 2500,
			Heartbeats: 200, HeartbeatCPU: 0.1, RenewalCPU: 0.04,
		})
	}
	return sizes
}

func TestRested(t *testing.T) {
	t.Parallel()
	f := figures{Nodes: 1000}
	noon := time.Unix(1e9, 0)
	f.rested(observation{noon, time.Second, 100}, observation{noon.Add(10 * time.Second), 3 * time.Second, 500})
	require.InDelta(t, 40, f.Heartbeats, 1e-9)
	require.InDelta(t, 5, f.HeartbeatCPU, 1e-9, "2 s for 400")
	require.InDelta(t, 0.005*1000/22.5, f.heartbeatCore(), 1e-9)
}

func TestGrowth(t *testing.T) {
	t.Parallel()
	sizes := linearFleet()
	require.InDelta(t, 1, growth(sizes, func(f *figures) float64 { return float64(f.PeakMemory) }), 1e-9)
	require.InDelta(t, 0, growth(sizes, func(f *figures) float64 { return f.HeartbeatCPU }), 1e-9)
	require.InDelta(t, 2, growth(sizes, func(f *figures) float64 { return float64(f.Nodes) * float64(f.Nodes) }), 1e-9)
}

func TestJudge(t *testing.T) {
	t.Parallel()
	r := report{Bars: judge(linearFleet())}
	require.Zero(t, r.missed(), "%v", r.Bars)
	for missed, spoil := range map[string]func(sizes []figures){
		"resident memory, at most at any time": func(sizes []figures) { sizes[2].PeakMemory = mostMemory + 1 },
		"restart to ready":                     func(sizes []figures) { sizes[2].Ready = 5.1 },
		"writes on restarts":                   func(sizes []figures) { sizes[0].RestartWrites = 1 },
		"writes at rest":                       func(sizes []figures) { sizes[1].RestWrites = 1 },
		"heartbeats of all nodes":              func(sizes []figures) { sizes[2].HeartbeatCPU = 0.12 },
		"renewals of all leases":               func(sizes []figures) { sizes[2].RenewalCPU = 0.05 },
		"growth of resident memory":            func(sizes []figures) { sizes[0].PeakMemory = 10 * sidecar.MiB },
		"growth of time to publish all nodes":  func(sizes []figures) { sizes[2].PublishRate = 150 },
	} {
		sizes := linearFleet()
		spoil(sizes)
		r := report{Bars: judge(sizes)}
		for _, b := range r.Bars {
			if b.What == missed {
				require.False(t, b.Met, missed)
			}
		}
		require.Positive(t, r.missed(), missed)
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	sizes := linearFleet()
	sizes[2].RestWrites = 3
	r := report{Machine: "a machine", Sizes: sizes, Bars: judge(sizes)}
	var out bytes.Buffer
	require.NoError(t, r.print(&out, "there.svg"))
	for _, want := range []string{
		`(?m)^nodes +1000 +3000 +10000$`,
		`(?m)^resident memory, at most at any time, MiB +20 +59 +196$`,
		`(?m)^heartbeats of all nodes every 22\.5 s, % of a core +0\.4 +1\.3 +4\.4$`,
		`(?m)^writes at rest +0 +3 +NOT MET$`,
		`(?m)^restart to ready +<= 5 s +4\.0 s +met$`,
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

// TestPlot reads the drawing as a viewer would: it is XML, with a point for each
// size in each panel, and higher where the figure is.
func TestPlot(t *testing.T) {
	t.Parallel()
	svg := plot(report{Machine: "a <machine>", Sizes: linearFleet()})
	counts := map[string]int{}
	for decoder := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if start, is := token.(xml.StartElement); is {
			counts[start.Name.Local]++
		}
	}
	require.Equal(t, len(panels), counts["g"])
	require.Equal(t, 3*len(panels), counts["circle"])
	require.Contains(t, svg, "a &lt;machine&gt;")

	p := panel{"p", func(f *figures) float64 { return float64(f.Nodes) }, 0}
	var drawn strings.Builder
	p.draw(&drawn, []figures{{Nodes: 550}, {Nodes: 1100}})
	// The top of the axis is a tenth above the highest.
	require.Contains(t, drawn.String(), `points="170.0,116.4 290.0,52.7"`)
	require.NotContains(t, drawn.String(), "dasharray", "there is no bar")
	drawn.Reset()
	(&panel{"p", func(*figures) float64 { return 0 }, 0}).draw(&drawn, []figures{{Nodes: 1}})
	require.NotContains(t, drawn.String(), "NaN")
}

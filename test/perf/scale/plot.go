package main

import "github.com/kwok-dra/kwok-dra/test/perf/plot"

// panel is a figure against the number of nodes.
type panel struct {
	title string
	of    func(f *figures) float64
	// limit is the bar, or 0.
	limit float64
}

var panels = []panel{
	{"resident memory at most, MiB", func(f *figures) float64 { return float64(f.Memory.Peak) / (1 << 20) }, mostMemory >> 20},
	{"restart to ready, of plain informers", func(f *figures) float64 { return f.Restart.readyToPlain().Median }, mostRestart},
	{"heartbeats of all nodes, % of a core", func(f *figures) float64 { return 100 * f.heartbeatCore() }, 0},
	{"lists of all leases, % of a core", func(f *figures) float64 { return 100 * f.Leases.Core }, 0},
	{"publish, nodes/s", func(f *figures) float64 { return f.Writing.PublishRate }, 0},
	{"prepare, Pods/s", func(f *figures) float64 { return f.Writing.PrepareRate }, 0},
}

// drawPlot draws all figures against the number of nodes.
func drawPlot(r report) string {
	var drawn []plot.Panel
	for _, p := range panels {
		line := plot.Series{}
		for i := range r.Sizes {
			line.X, line.Y = append(line.X, float64(r.Sizes[i].Nodes)), append(line.Y, p.of(&r.Sizes[i]))
		}
		drawn = append(drawn, plot.Panel{Title: p.title, Limit: p.limit, Series: []plot.Series{line}})
	}
	return plot.Draw(drawn, r.Machine+"; dashed: the bar; x: nodes")
}

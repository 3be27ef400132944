package main

import (
	"fmt"
	"html"
	"strings"
)

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

// The measures of a panel, in pixels: its own, and those of what is drawn in it.
const (
	panelWidth, panelHeight = 320, 220
	plotLeft, plotTop       = 50, 40
	plotWidth, plotHeight   = 240, 140
	columns                 = 3
)

// drawPlot draws all figures against the number of nodes, each in a panel of its own
// with axes that begin at zero, so that a straight line up is linear growth.
func drawPlot(r report) string {
	var svg strings.Builder
	width, height := columns*panelWidth, (len(panels)+columns-1)/columns*panelHeight+30
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n", width, height, width, height)
	fmt.Fprintf(&svg, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	for i := range panels {
		fmt.Fprintf(&svg, `<g transform="translate(%d,%d)">`+"\n", i%columns*panelWidth, i/columns*panelHeight)
		panels[i].drawPanel(&svg, r.Sizes)
		svg.WriteString("</g>\n")
	}
	fmt.Fprintf(&svg, `<text x="10" y="%d" fill="#555">%s; dashed: the bar; x: nodes</text>`+"\n</svg>\n", height-10, html.EscapeString(r.Machine))
	return svg.String()
}

func (p *panel) drawPanel(svg *strings.Builder, sizes []figures) {
	nodes, top := 1.0, p.limit
	for i := range sizes {
		nodes, top = max(nodes, float64(sizes[i].Nodes)), max(top, p.of(&sizes[i]))
	}
	top *= 1.1
	if top == 0 {
		top = 1
	}
	x := func(f *figures) float64 { return plotLeft + plotWidth*float64(f.Nodes)/nodes }
	y := func(value float64) float64 { return plotTop + plotHeight*(1-value/top) }
	fmt.Fprintf(svg, `<text x="%d" y="20" font-size="13">%s</text>`+"\n", plotLeft-30, html.EscapeString(p.title))
	fmt.Fprintf(svg, `<path d="M%d %dv%dh%d" fill="none" stroke="#888"/>`+"\n", plotLeft, plotTop, plotHeight, plotWidth)
	if p.limit > 0 {
		fmt.Fprintf(svg, `<path d="M%d %.1fh%d" stroke="#c00" stroke-dasharray="5 4"/>`+"\n", plotLeft, y(p.limit), plotWidth)
	}
	var line strings.Builder
	for i := range sizes {
		f := &sizes[i]
		fmt.Fprintf(&line, "%.1f,%.1f ", x(f), y(p.of(f)))
		fmt.Fprintf(svg, `<circle cx="%.1f" cy="%.1f" r="3" fill="#06c"/>`+"\n", x(f), y(p.of(f)))
		fmt.Fprintf(svg, `<text x="%.1f" y="%.1f" text-anchor="end">%.3g</text>`+"\n", x(f), y(p.of(f))-6, p.of(f))
		fmt.Fprintf(svg, `<text x="%.1f" y="%d" text-anchor="middle" fill="#555">%d</text>`+"\n", x(f), plotTop+plotHeight+15, f.Nodes)
	}
	fmt.Fprintf(svg, `<polyline points="%s" fill="none" stroke="#06c" stroke-width="1.5"/>`+"\n", strings.TrimSpace(line.String()))
}

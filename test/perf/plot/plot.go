// Package plot draws figures as SVG: panels side by side, each with axes that begin at
// zero, so that a straight line up is linear growth.
package plot

import (
	"fmt"
	"html"
	"strings"
)

// Panel is a figure against a size.
type Panel struct {
	Title string
	// Limit is drawn as a dashed line, unless 0.
	Limit float64
	// Series are lines of the same figure, at most as many as there are colors.
	Series []Series
}

// Series is a line of points, by ascending X.
type Series struct {
	Name string
	X, Y []float64
}

// Colors are those of the series of a panel.
var Colors = []string{"#06c", "#d60", "#080", "#808"}

// The measures of a panel, in pixels: its own, and those of what is drawn in it.
const (
	panelWidth, panelHeight = 320, 220
	plotLeft, plotTop       = 50, 40
	plotWidth, plotHeight   = 240, 140
	columns                 = 3
)

// Draw draws the panels, and below them a line of text and the names of the series.
func Draw(panels []Panel, footer string) string {
	var svg strings.Builder
	width, height := columns*panelWidth, (len(panels)+columns-1)/columns*panelHeight+30
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n", width, height, width, height)
	fmt.Fprintf(&svg, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	for i := range panels {
		fmt.Fprintf(&svg, `<g transform="translate(%d,%d)">`+"\n", i%columns*panelWidth, i/columns*panelHeight)
		panels[i].drawPanel(&svg)
		svg.WriteString("</g>\n")
	}
	fmt.Fprintf(&svg, `<text x="10" y="%d"><tspan fill="#555">%s</tspan>`, height-10, html.EscapeString(footer))
	if len(panels) > 0 && len(panels[0].Series) > 1 {
		for i, series := range panels[0].Series {
			fmt.Fprintf(&svg, `<tspan dx="12" fill="%s">%s</tspan>`, Colors[i%len(Colors)], html.EscapeString(series.Name))
		}
	}
	svg.WriteString("</text>\n</svg>\n")
	return svg.String()
}

func (p *Panel) drawPanel(svg *strings.Builder) {
	right, top := 1.0, p.Limit
	for _, series := range p.Series {
		for i := range series.X {
			right, top = max(right, series.X[i]), max(top, series.Y[i])
		}
	}
	top *= 1.1
	if top == 0 {
		top = 1
	}
	x := func(value float64) float64 { return plotLeft + plotWidth*value/right }
	y := func(value float64) float64 { return plotTop + plotHeight*(1-value/top) }
	fmt.Fprintf(svg, `<text x="%d" y="20" font-size="13">%s</text>`+"\n", plotLeft-30, html.EscapeString(p.Title))
	fmt.Fprintf(svg, `<path d="M%d %dv%dh%d" fill="none" stroke="#888"/>`+"\n", plotLeft, plotTop, plotHeight, plotWidth)
	if p.Limit > 0 {
		fmt.Fprintf(svg, `<path d="M%d %.1fh%d" stroke="#c00" stroke-dasharray="5 4"/>`+"\n", plotLeft, y(p.Limit), plotWidth)
	}
	for number, series := range p.Series {
		color := Colors[number%len(Colors)]
		below := -6.0 // the figures of the first series stand above its points
		if number > 0 {
			below = 14
		}
		var line strings.Builder
		for i := range series.X {
			atX, atY := x(series.X[i]), y(series.Y[i])
			fmt.Fprintf(&line, "%.1f,%.1f ", atX, atY)
			fmt.Fprintf(svg, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", atX, atY, color)
			fmt.Fprintf(svg, `<text x="%.1f" y="%.1f" text-anchor="end">%.3g</text>`+"\n", atX, atY+below, series.Y[i])
			if number == 0 {
				fmt.Fprintf(svg, `<text x="%.1f" y="%d" text-anchor="middle" fill="#555">%g</text>`+"\n", atX, plotTop+plotHeight+15, series.X[i])
			}
		}
		fmt.Fprintf(svg, `<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5"/>`+"\n", strings.TrimSpace(line.String()), color)
	}
}

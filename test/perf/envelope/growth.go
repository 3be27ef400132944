package main

import "math"

// growth is by which power of a dimension a metric grows.
type growth struct {
	Dimension string `json:"dimension"`
	Metric    string `json:"metric"`
	Subject   string `json:"subject"`
	// Exponent is the slope of the points on logarithmic axes: 1 is linear, 0 is no growth. Fit is R², the
	// share of the variance that it explains.
	Exponent float64 `json:"exponent"`
	Fit      float64 `json:"fit"`
	Points   int     `json:"points"`
}

// fitExponent fits y = c * x^exponent by least squares of the logarithms. Points at or below 0 have none and are
// left out. Fewer than two points of different x fit anything.
func fitExponent(x, y []float64) (exponent, fit float64, points int) {
	var logX, logY []float64
	for i := range x {
		if x[i] > 0 && y[i] > 0 {
			logX, logY = append(logX, math.Log(x[i])), append(logY, math.Log(y[i]))
		}
	}
	meanX, meanY := mean(logX), mean(logY)
	var xx, xy, yy float64
	for i := range logX {
		dx, dy := logX[i]-meanX, logY[i]-meanY
		xx, xy, yy = xx+dx*dx, xy+dx*dy, yy+dy*dy
	}
	if xx == 0 {
		return 0, 0, len(logX)
	}
	exponent, fit = xy/xx, 1
	if yy > 0 {
		fit = xy * xy / (xx * yy)
	}
	return exponent, fit, len(logX)
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, value := range values {
		sum += value
	}
	return sum / float64(max(1, len(values)))
}

// fitGrowth fits each metric along each dimension that has points enough.
func (r *report) fitGrowth() []growth {
	const leastPoints = 3
	var all []growth
	for _, d := range dimensions {
		for _, m := range metrics {
			for _, subject := range r.Subjects {
				line := r.curve(d.name, subject, m)
				g := growth{Dimension: d.name, Metric: m.key, Subject: subject}
				if g.Exponent, g.Fit, g.Points = fitExponent(line.X, line.Y); g.Points >= leastPoints {
					all = append(all, g)
				}
			}
		}
	}
	return all
}

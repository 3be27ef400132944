package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/kwok-dra/kwok-dra/test/perf/pairs"
	"github.com/kwok-dra/kwok-dra/test/perf/plot"
)

// report is what a run has measured.
type report struct {
	Machine string `json:"machine"`
	Date    string `json:"date"`
	// Subjects are those that took turns: the old one and the new one, or one.
	Subjects []string `json:"subjects"`
	Rounds   int      `json:"rounds"`
	Base     shape    `json:"base"`
	Points   []point  `json:"points"`
	Growth   []growth `json:"growth"`
	// Verdicts are those on all metrics, if there are two subjects.
	Verdicts []verdict `json:"verdicts,omitempty"`
	// Skipped says which dimensions were not measured, and why.
	Skipped []string `json:"skipped,omitempty"`
	Seconds float64  `json:"seconds"`
}

// point is a shape of the cluster, as a value of a dimension. The base point is one of each dimension.
type point struct {
	Dimension string `json:"dimension"`
	Value     int    `json:"value"`
	Shape     shape  `json:"shape"`
	// Samples are of the rounds of each subject, and Again those of the rounds that were to confirm a regression.
	Samples map[string][]sample `json:"samples"`
	Again   map[string][]sample `json:"again,omitempty"`
	Paces   map[string][]pace   `json:"paces"`
	// Failed says why rounds failed that were made again.
	Failed []string `json:"failed,omitempty"`
}

// The limits of a pace beyond which a run says so.
const (
	// mostCreating: where Pods are still created while nearly all of the others are bound, the scheduler waits for them.
	mostCreating = 0.9
	// mostOwn: this process keeps the processors from the cluster.
	mostOwn = 0.4
	// mostOthers: so do others, and differently in each round.
	mostOthers = 0.2
)

// medianPace is that of all rounds of all subjects.
func (p *point) medianPace() pace {
	var creating, own, others []float64
	for _, paces := range p.Paces {
		for _, one := range paces {
			creating, own, others = append(creating, one.Creating), append(own, one.Own), append(others, one.Others)
		}
	}
	return pace{Creating: pairs.Of(creating).Median, Own: pairs.Of(own).Median, Others: pairs.Of(others).Median}
}

// isUnpaced reports whether rates and latencies of the point are those of the rounds' own writer.
func (p *point) isUnpaced() bool {
	median := p.medianPace()
	return median.Creating > mostCreating || median.Own > mostOwn
}

// listWarnings says why the figures of a point are to be doubted.
func (p *point) listWarnings() []string {
	var all []string
	for _, failure := range p.Failed {
		all = append(all, "measured again since it failed once: "+failure)
	}
	median := p.medianPace()
	if median.Creating > mostCreating {
		all = append(all, fmt.Sprintf("the writer was the limit, not the scheduler: it created Pods for %.0f %% of the time; rates and latencies are its own", 100*median.Creating))
	}
	if median.Own > mostOwn {
		all = append(all, fmt.Sprintf("this program took %.0f %% of all processors; rates and latencies are its own", 100*median.Own))
	}
	if median.Others > mostOthers {
		all = append(all, fmt.Sprintf("other programs took %.0f %% of all processors; compare only subjects that took turns", 100*median.Others))
	}
	return all
}

// curve returns the medians of a metric along a dimension.
func (r *report) curve(dimension, subject string, m metric) plot.Series {
	line := plot.Series{Name: subject}
	for i := range r.Points {
		p := &r.Points[i]
		if p.Dimension == dimension && len(p.Samples[subject]) > 0 {
			line.X = append(line.X, float64(p.Value))
			line.Y = append(line.Y, pairs.Of(valuesOf(p.Samples[subject], m)).Median)
		}
	}
	return line
}

// conclude computes what follows from the points.
func (r *report) conclude() {
	r.Growth, r.Verdicts = r.fitGrowth(), nil
	if len(r.Subjects) != 2 {
		return
	}
	for _, p := range r.distinctPoints() {
		r.Verdicts = append(r.Verdicts, p.judge(r.Subjects[0], r.Subjects[1])...)
	}
}

// distinctPoints returns each point once: the base point as one of no dimension.
func (r *report) distinctPoints() []point {
	var all []point
	for _, p := range r.Points {
		if p.Shape == r.Base {
			p.Dimension, p.Value = baseName, 0
		}
		if !slices.ContainsFunc(all, func(other point) bool { return other.Shape == p.Shape }) {
			all = append(all, p)
		}
	}
	return all
}

// pointName is such as "nodes at 150".
func pointName(dimension string, value int) string {
	if dimension == baseName {
		return "base point"
	}
	return fmt.Sprintf("%s at %d", dimension, value)
}

// doubts say what was not measured, or not as it should have been.
func (r *report) doubts() []string {
	all := slices.Clone(r.Skipped)
	for _, p := range r.distinctPoints() {
		for _, warning := range p.listWarnings() {
			all = append(all, fmt.Sprintf("%s: %s", pointName(p.Dimension, p.Value), warning))
		}
	}
	return all
}

func (r *report) printTables(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if len(r.Subjects) == 2 {
		r.printVerdicts(table)
	} else {
		r.printFigures(table)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print report: %w", err)
	}
	for _, doubt := range r.doubts() {
		fmt.Fprintln(out, doubt)
	}
	fmt.Fprintf(out, "%s; %d rounds in turn, of %d Pods unless the point says otherwise\n", r.Machine, r.Rounds, r.Base.Pods)
	return nil
}

// printVerdicts prints what is not the same, the worst first, and how much is.
func (r *report) printVerdicts(table io.Writer) {
	fmt.Fprintf(table, "point\tmetric\t%s\t%s\tdelta\tp\tverdict\n", r.Subjects[0], r.Subjects[1])
	told := slices.DeleteFunc(slices.Clone(r.Verdicts), func(v verdict) bool { return v.Verdict == same })
	order := []string{regression, unconfirmed, improvement, unpaced}
	slices.SortStableFunc(told, func(a, b verdict) int {
		return cmp.Compare(slices.Index(order, a.Verdict), slices.Index(order, b.Verdict))
	})
	for _, v := range told {
		fmt.Fprintf(table, "%s\t%s, %s\t%.4g\t%.4g\t%s\t%.3f\t%s\n", pointName(v.Dimension, v.Value), v.Metric, v.Unit, v.Old, v.New, v.formatDelta(), v.P, v.Verdict)
	}
	fmt.Fprintf(table, "all others\t%d figures\t\t\t%s\t\t%s\n", len(r.Verdicts)-len(told), same, same)
}

// printFigures prints the medians of each point, and the exponents.
func (r *report) printFigures(table io.Writer) {
	fmt.Fprint(table, "dimension\tpoint")
	for _, m := range metrics {
		fmt.Fprintf(table, "\t%s, %s", m.key, m.unit)
	}
	fmt.Fprintln(table)
	for i := range r.Points {
		p := &r.Points[i]
		fmt.Fprintf(table, "%s\t%d", p.Dimension, p.Value)
		for _, m := range metrics {
			fmt.Fprintf(table, "\t%.4g", pairs.Of(valuesOf(p.Samples[r.Subjects[0]], m)).Median)
		}
		fmt.Fprintln(table)
	}
	for _, d := range dimensions {
		grown := slices.DeleteFunc(slices.Clone(r.Growth), func(g growth) bool { return g.Dimension != d.name })
		if len(grown) == 0 {
			continue
		}
		fmt.Fprintf(table, "%s\texponent", d.name)
		for _, m := range metrics {
			cell := ""
			for _, g := range grown {
				if g.Metric == m.key {
					cell = fmt.Sprintf("%.2f", g.Exponent)
				}
			}
			fmt.Fprint(table, "\t", cell)
		}
		fmt.Fprintln(table)
	}
}

func (r *report) writeJSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	return nil
}

func readReport(path string) (*report, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	r := &report{}
	if err := json.Unmarshal(content, r); err != nil {
		return nil, fmt.Errorf("read report %s: %w", path, err)
	}
	return r, nil
}

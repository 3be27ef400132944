package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kwok-dra/kwok-dra/test/perf/plot"
)

// drawn are the metrics that have curves on the page.
var drawn = []string{"podRate", "allocationP50", "schedulerCPU", "apiServerCPU"}

// writePage writes a page about reports, and its pictures into the folder "images" beside it.
func writePage(path string, files []string) error {
	if len(files) == 0 {
		return errors.New("write page: name reports, such as bin/envelope.json")
	}
	var reports []*report
	for _, file := range files {
		r, err := readReport(file)
		if err != nil {
			return err
		}
		reports = addReport(reports, r)
	}
	images := filepath.Join(filepath.Dir(path), "images")
	if err := os.MkdirAll(images, 0o755); err != nil {
		return fmt.Errorf("make directory for pictures: %w", err)
	}
	page, pictures := describe(reports)
	for name, svg := range pictures {
		if err := os.WriteFile(filepath.Join(images, name), []byte(svg), 0o644); err != nil {
			return fmt.Errorf("write picture: %w", err)
		}
	}
	if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

// addReport adds a report, or its dimensions to that of an earlier run of the same subjects from the same base point: one more
// dimension, or one measured anew, need not cost a run of all.
func addReport(reports []*report, r *report) []*report {
	i := slices.IndexFunc(reports, func(other *report) bool {
		return slices.Equal(other.Subjects, r.Subjects) && other.Machine == r.Machine && other.Rounds == r.Rounds && other.Base == r.Base
	})
	if i < 0 {
		return append(reports, r)
	}
	all := reports[i]
	isNew := func(p point) bool {
		return slices.ContainsFunc(r.Points, func(other point) bool { return other.Dimension == p.Dimension })
	}
	all.Points = append(slices.DeleteFunc(all.Points, isNew), r.Points...)
	for _, skipped := range r.Skipped {
		if !slices.Contains(all.Skipped, skipped) {
			all.Skipped = append(all.Skipped, skipped)
		}
	}
	all.Seconds += r.Seconds
	all.Date = max(all.Date, r.Date)
	all.conclude()
	return reports
}

// pageHead says what all reports have in common.
const pageHead = `# The envelope of DRA

How the control plane of Kubernetes copes with more of everything that dynamic resource allocation (DRA) has: one dimension at a time is enlarged from a base point. ` +
	"`make envelope`" + ` measures it on your machine, and ` + "`make envelope AGAINST=1.35`" + ` compares two versions of Kubernetes and fails if the newer one is worse. ` + "`make envelope-page`" + ` wrote this page.

## How to read the figures

- The whole cluster runs on one machine. Compare figures of one section with each other: absolute figures say more of the machine.
- The base point has %s.
- In a round, all Pods are created at once and the round ends when all run. Versions take turns, in the reverse order in every second round. A figure is the median of its rounds.
- Nodes are API objects that kwok makes Ready, and kwok runs the Pods. The benchmark writes the ResourceSlices itself. So no kubelet, driver or kwok-dra takes part, except along the dimension *without kwok-dra, with it, with --node-load*: what grows is the work of kube-scheduler, kube-apiserver and kube-controller-manager.
- kube-scheduler and kube-controller-manager run without their limits of requests. ` + "`DRAConsumableCapacity` and `DRAPartitionableDevices`" + ` are on in all versions.
- *Created to bound* ends when devices are allocated and the Pod is bound. Both ends are as a client sees them.
- A regression differs by at least %.0f %%, with p <= 0.05 in the Mann-Whitney U test, as benchstat has it, and shows again when the point is measured a second time.
- Each point, and each second look at one, has control planes of its own, which are new. Control planes that have worked for a while have a larger heap, and may be slower or faster by half for minutes.
- *Exponent* is the power by which a figure grows along a dimension: 1 is linear, 0 is no growth. It is the slope of a line through the points on logarithmic axes, without points at 0. In brackets is R², the share of the variance that the line explains; of a figure that hardly
  grows, R² says nothing.
`

// describe returns the page, and its pictures by their names.
func describe(reports []*report) (page string, pictures map[string]string) {
	var out strings.Builder
	fmt.Fprintf(&out, pageHead, reports[0].Base, 100*leastDelta)
	pictures = map[string]string{}
	for number, r := range reports {
		fmt.Fprintf(&out, "\n## %s\n\n%s, on %s. %d rounds, %.0f minutes.\n", strings.Join(r.Subjects, " against "), r.Machine, r.Date, r.Rounds, r.Seconds/60)
		for _, key := range drawn {
			m := metricByKey(key)
			name := fmt.Sprintf("envelope-%d-%s.svg", number+1, key)
			pictures[name] = r.draw(m)
			fmt.Fprintf(&out, "\n![%s, %s](images/%s)\n", m.title, m.unit, name)
		}
		r.describeGrowth(&out)
		r.describeVerdicts(&out)
		for i, doubt := range r.doubts() {
			if i == 0 {
				out.WriteString("\nTo be doubted:\n\n")
			}
			fmt.Fprintf(&out, "- %s\n", doubt)
		}
	}
	return out.String(), pictures
}

// String says what the base point has.
func (s shape) String() string {
	return fmt.Sprintf("%d nodes with %d devices of %d attributes each, in one slice of one driver, and %d Pods with a claim of one device each", s.Nodes, s.Devices, s.Attributes, s.Pods)
}

func metricByKey(key string) metric {
	i := slices.IndexFunc(metrics, func(m metric) bool { return m.key == key })
	return metrics[i]
}

// draw draws a metric along each dimension.
func (r *report) draw(m metric) string {
	var panels []plot.Panel
	for _, d := range dimensions {
		panel := plot.Panel{Title: d.unit}
		for _, subject := range r.Subjects {
			if line := r.curve(d.name, subject, m); len(line.X) > 0 {
				panel.Series = append(panel.Series, line)
			}
		}
		if len(panel.Series) > 0 {
			panels = append(panels, panel)
		}
	}
	return plot.Draw(panels, fmt.Sprintf("%s, %s;", m.title, m.unit))
}

// describeGrowth has a table of the exponents of each subject.
func (r *report) describeGrowth(out *strings.Builder) {
	if len(r.Growth) == 0 {
		return
	}
	fmt.Fprintf(out, "\nExponents of %s:\n\n| dimension |", strings.Join(r.Subjects, ", "))
	for _, key := range drawn {
		fmt.Fprintf(out, " %s |", metricByKey(key).title)
	}
	fmt.Fprintf(out, "\n|---|%s\n", strings.Repeat("---|", len(drawn)))
	for _, d := range dimensions {
		cells, hasExponents := []string{d.unit}, false
		for _, key := range drawn {
			var exponents []string
			for _, g := range r.Growth { // in the order of the subjects
				if g.Dimension == d.name && g.Metric == key {
					exponents = append(exponents, fmt.Sprintf("%.2f (%.2f)", g.Exponent, g.Fit))
				}
			}
			cells = append(cells, strings.Join(exponents, ", "))
			hasExponents = hasExponents || len(exponents) > 0
		}
		if hasExponents {
			fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | "))
		}
	}
}

// describeVerdicts has a table of what is not the same.
func (r *report) describeVerdicts(out *strings.Builder) {
	if len(r.Subjects) != 2 {
		return
	}
	told := slices.DeleteFunc(slices.Clone(r.Verdicts), func(v verdict) bool { return v.Verdict == same })
	if len(told) == 0 {
		fmt.Fprintf(out, "\nNone of %d figures differs.\n", len(r.Verdicts))
		return
	}
	fmt.Fprintf(out, "\n%d of %d figures differ:\n\n| point | figure | %s | %s | change | p | verdict |\n|---|---|---|---|---|---|---|\n",
		len(told), len(r.Verdicts), r.Subjects[0], r.Subjects[1])
	for _, v := range told {
		m := metricByKey(v.Metric)
		fmt.Fprintf(out, "| %s | %s, %s | %.4g | %.4g | %s | %.3f | %s |\n", pointName(v.Dimension, v.Value), m.title, m.unit, v.Old, v.New, v.formatDelta(), v.P, v.Verdict)
	}
}

package report

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// step is a step of a load test in the file of JUnit's format that ClusterLoader2 writes.
type step struct {
	Name    string  `xml:"name,attr"`
	Seconds float64 `xml:"time,attr"`
	Failure *string `xml:"failure"`
}

// ReadJUnit reads how the steps of a load test ended, from the file that ClusterLoader2
// writes, and how many seconds the test took. The entry for the whole test is no step: it
// is among them only if it failed. The file has nothing of measurements that were
// skipped; MarkSkipped finds them.
func ReadJUnit(file string) (specs []Spec, seconds float64, err error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, 0, fmt.Errorf("read report: %w", err)
	}
	var suite struct {
		Steps []step `xml:"testcase"`
	}
	if err := xml.Unmarshal(content, &suite); err != nil {
		return nil, 0, fmt.Errorf("read report %s: %w", file, err)
	}
	for _, s := range suite.Steps {
		spec := Spec{Name: s.shortTitle(), Result: Passed, Seconds: math.Round(s.Seconds*10) / 10}
		if s.Failure != nil {
			spec.Result, spec.Message = Failed, strings.TrimSpace(*s.Failure)
		}
		if s.isOverall() {
			seconds += spec.Seconds
			if spec.Result == Passed {
				continue
			}
		}
		specs = append(specs, spec)
	}
	return specs, seconds, nil
}

// overall is in the name of the entry for the whole test, before the path of its configuration.
const overall = " overall ("

func (s step) isOverall() bool { return strings.Contains(s.Name, overall) }

// shortTitle is the name without the program, and without where its configuration is.
func (s step) shortTitle() string {
	name := strings.TrimPrefix(s.Name, "ClusterLoaderV2 ")
	title, _, _ := strings.Cut(name, overall)
	if title != name {
		title += " overall"
	}
	return title
}

// What ClusterLoader2 logs of a step that begins, and of a measurement that it skips.
var (
	begins = regexp.MustCompile(`\] Step "(.+)" started$`)
	skips  = regexp.MustCompile(`\] (\S+): (.+, skipping the meas\w+)!$`)
)

// MarkSkipped finds the measurements in a log of ClusterLoader2 that were skipped, and says so
// of their steps, which the report calls passed.
func MarkSkipped(specs []Spec, log string) error {
	content, err := os.ReadFile(log)
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	current := ""
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		if begun := begins.FindStringSubmatch(line); begun != nil {
			current = begun[1]
		}
		skipped := skips.FindStringSubmatch(line)
		if skipped == nil {
			continue
		}
		found := false
		for i := range specs {
			spec := &specs[i]
			if strings.Contains(spec.Name, ": "+current+" [") && strings.HasSuffix(spec.Name, "] - "+skipped[1]) {
				spec.Result, spec.Message, found = Skipped, skipped[2], true
			}
		}
		if !found {
			return fmt.Errorf("read log %s: measurement %s was skipped, and no step is of it", log, skipped[1])
		}
	}
	return nil
}

// latencies is a summary of ClusterLoader2.
type latencies struct {
	DataItems []struct {
		Data   map[string]float64 `json:"data"`
		Unit   string             `json:"unit"`
		Labels map[string]string  `json:"labels"`
	} `json:"dataItems"`
}

// ReadLatencies reads how long Pods took to start and claims to be allocated, from the
// summaries that ClusterLoader2 writes into a directory.
func ReadLatencies(dir string) ([]Measure, error) {
	var all []Measure
	for _, metric := range []struct{ prefix, suffix, label, name string }{
		{"PodStartupLatency_", "PodStartupLatency", "pod_startup", "pod startup"},
		{"ResourceClaimAllocationLatency_", "ClaimAllocationLatency", "claim_allocation", "claim allocation"},
	} {
		files, err := filepath.Glob(filepath.Join(dir, metric.prefix+"*.json"))
		if err != nil {
			return nil, fmt.Errorf("list summaries: %w", err)
		}
		for _, file := range files {
			identifier, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(file), metric.prefix), "_")
			some, err := readLatency(file, metric.label, metric.name+" in "+strings.TrimSuffix(identifier, metric.suffix))
			if err != nil {
				return nil, err
			}
			all = append(all, some...)
		}
	}
	return all, nil
}

// readLatency reads one metric of a summary.
func readLatency(file, label, name string) ([]Measure, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read summary: %w", err)
	}
	var summary latencies
	if err := json.Unmarshal(content, &summary); err != nil {
		return nil, fmt.Errorf("read summary %s: %w", file, err)
	}
	var all []Measure
	for _, item := range summary.DataItems {
		if item.Labels["Metric"] != label {
			continue
		}
		for _, percentile := range []string{"50", "90", "99"} {
			all = append(all, Measure{Name: name + ", p" + percentile, Value: math.Round(item.Data["Perc"+percentile]), Unit: item.Unit})
		}
	}
	return all, nil
}

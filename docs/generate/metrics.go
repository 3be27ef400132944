package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kwok-dra/kwok-dra/internal/app"
	"github.com/kwok-dra/kwok-dra/internal/extensions"
	"github.com/kwok-dra/kwok-dra/internal/extensions/devicemetrics"
)

// description finds the parts of a description, which it tells only as text.
var description = regexp.MustCompile(`^Desc\{fqName: "([^"]+)", help: "(.*?)"(?:, unit: "[^"]*")?, constLabels: \{[^}]*\}, variableLabels: \{([^}]*)\}\}$`)

// metrics lists the metrics that the sidecar registers itself.
func metrics(string) (string, error) {
	var rows [][]string
	for _, collector := range app.Collectors(extensions.All()...) {
		for _, desc := range descriptions(collector) {
			found := description.FindStringSubmatch(desc)
			if found == nil {
				return "", fmt.Errorf("read the description of a metric: %s", desc)
			}
			labels := strings.Join(strings.FieldsFunc(found[3], func(r rune) bool { return r == ',' }), "`, `")
			rows = append(rows, []string{code(found[1]), metricType(found[1]), unit(found[1]), code(labels), strings.ReplaceAll(found[2], `\"`, `"`)})
		}
	}
	slices.SortFunc(rows, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	return table([]string{"metric", "type", "unit", "labels", "meaning"}, rows), nil
}

func descriptions(collector prometheus.Collector) []string {
	channel := make(chan *prometheus.Desc, 100)
	collector.Describe(channel)
	close(channel)
	var all []string
	for desc := range channel {
		all = append(all, desc.String())
	}
	return all
}

// metricType goes by Prometheus' rules for names, which the metrics follow.
func metricType(name string) string {
	switch {
	case strings.HasSuffix(name, "_total"):
		return "counter"
	case strings.HasSuffix(name, "_duration_seconds"):
		return "histogram"
	}
	return "gauge"
}

// unit is that of a metric.
func unit(name string) string {
	if strings.HasSuffix(name, "_seconds") {
		return "seconds"
	}
	return "count"
}

// deviceMetrics lists the metrics of single devices.
func deviceMetrics(string) (string, error) {
	var rows [][]string
	for _, family := range devicemetrics.Families() {
		rows = append(rows, []string{code(family.Name), family.Help})
	}
	rows = append(rows, []string{code(devicemetrics.Omitted.Name), devicemetrics.Omitted.Help})
	return table([]string{"metric", "meaning"}, rows), nil
}

// prepareFailures lists the reasons for which claims cannot be prepared.
func prepareFailures(root string) (string, error) {
	rows, err := constantRows(root, "internal/claims/plan/failure.go", func(c constant) []string {
		return []string{code(c.value), capitalized(c.meaning)}
	}, "Reason")
	return table([]string{"`reason`", "meaning"}, rows), err
}

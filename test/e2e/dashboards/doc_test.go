// Package dashboards proves that what the project gives to Grafana and Prometheus
// fits the metrics that a running kwok-dra has. Prometheus' own parser, engine
// and rules say so.
package dashboards

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// jobName is what the PodMonitor calls kwok-dra, and what the alerts go by.
const jobName = "kwok-dra"

// path is that of a file of the dashboards.
func path(elements ...string) string {
	return filepath.Join(append([]string{sidecar.Root(), "kustomize", "dashboards"}, elements...)...)
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	return content
}

// forEach runs a subtest for each item.
func forEach[T any](t *testing.T, items []T, name func(T) string, test func(*testing.T, T)) {
	t.Helper()
	for i, item := range items {
		t.Run(fmt.Sprintf("%02d %s", i, name(item)), func(t *testing.T) { test(t, item) })
	}
}

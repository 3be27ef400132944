package app

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"github.com/kwok-dra/kwok-dra/pkg/shard"
)

// TestReadme holds the README's tables against the flags and metrics there are.
func TestReadme(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../cmd/kwok-dra/README.md")
	require.NoError(t, err)
	readme := string(data)
	options := NewOptions()
	options.Flags().VisitAll(func(f *pflag.Flag) {
		name := "--" + f.Name
		if len(f.Name) == 1 {
			name = "-" + f.Name
		}
		require.Contains(t, readme, "| `"+name+"` |")
	})
	options.Config = []string{"-"}
	require.NoError(t, options.Complete())
	store, err := newStore(NewOptions())
	require.NoError(t, err)
	events := record.NewBroadcaster()
	defer events.Shutdown()
	client := fake.NewClientset()
	owner, err := shard.New(shard.Options{Mode: shard.Lease, Client: client})
	require.NoError(t, err)
	s, err := newSidecar(options, clients{client, client}, store, owner, events)
	require.NoError(t, err)
	// Only what has run has shut down its queues.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.publisher.Run(ctx, 1)
	s.preparer.Run(ctx, 1)
	for _, collector := range s.collectors() {
		for _, name := range metricNames(collector) {
			require.Contains(t, readme, "| `"+name+"` |")
		}
	}
}

// metricNames reads the names off the descriptions, which tell them only as text.
func metricNames(collector prometheus.Collector) []string {
	described := make(chan *prometheus.Desc, 100)
	collector.Describe(described)
	close(described)
	var names []string
	for desc := range described {
		_, rest, _ := strings.Cut(desc.String(), `fqName: "`)
		name, _, _ := strings.Cut(rest, `"`)
		names = append(names, name)
	}
	return names
}

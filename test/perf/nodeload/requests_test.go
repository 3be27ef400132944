package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFlows are found in a log of the API server by the id of the request, in either order of their fields.
func TestFlows(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(log, []byte(`I1128 09:54:59.207884   12271 httplog.go:134] "HTTP" verb="GET" URI="/api/v1/nodes/n0" audit-ID="one" srcIP="127.0.0.1:50840" apf_pl="workload-low" apf_fs="service-accounts" resp=200
I1128 09:54:59.207885   12271 httplog.go:134] "HTTP" verb="GET" URI="/healthz" audit-ID="two" resp=200
I1128 09:54:59.207886   12271 httplog.go:134] "HTTP" verb="GET" URI="/api/v1/nodes/n1" audit-ID="three" apf_fs="system-nodes" apf_pl="system" resp=200
I1128 09:54:59.207887   12271 other.go:1] something else
`), 0o600))
	flows, err := readFlows(log)
	require.NoError(t, err)
	require.Equal(t, map[string]sender{
		"one":   {flowSchema: "service-accounts", priorityLevel: "workload-low"},
		"three": {flowSchema: "system-nodes", priorityLevel: "system"},
	}, flows)
}

// TestCountRequests counts those of one kind, and all of a component.
func TestCountRequests(t *testing.T) {
	t.Parallel()
	all := map[string]tally{
		"driver get nodes":       {sender{agent: "a"}: 2, sender{agent: "b"}: 1},
		"driver get nodes/proxy": {sender{}: 10},
		"kubelet get nodes":      {sender{}: 100},
	}
	require.Equal(t, 3, countRequests(all, "driver get nodes"))
	require.Equal(t, 13, countRequests(all, "driver"))
	require.Equal(t, 100, countRequests(all, "kubelet"))
}

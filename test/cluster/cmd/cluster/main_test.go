package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster"
)

func TestHelp(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"help"}, {"--help"}, {"-h"}, {"up", "--help"}, {"build", "-h"}} {
		var out bytes.Buffer
		require.NoError(t, runCommand(t.Context(), args, &out))
		require.Equal(t, usage, out.String())
	}
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args []string
		want string
	}{
		"unknown command":          {args: []string{"start"}, want: `run "start": unknown command, see "cluster help"`},
		"unknown flag":             {args: []string{"down", "--audit"}, want: "read flags of down: flag provided but not defined: -audit"},
		"an argument":              {args: []string{"up", "demo"}, want: `read flags of up: unexpected "demo"`},
		"a switch without value":   {args: []string{"up", "--feature-gates", "DRAPartitionableDevices"}, want: `"DRAPartitionableDevices" is not NAME=true or NAME=false`},
		"a name that is none":      {args: []string{"up", "--name", "a/b"}, want: `name cluster "a/b"`},
		"a cluster not there":      {args: []string{"kubeconfig", "--name", "not-there"}, want: "find cluster not-there: no such cluster"},
		"kubectl on none":          {args: []string{"kubectl", "--name", "not-there", "get", "nodes"}, want: "find cluster not-there: no such cluster"},
		"a path instead of a name": {args: []string{"kubeconfig", "--name", "../x"}, want: `name cluster "../x"`},
		"no program":               {args: []string{"run", "--name", "not-there"}, want: "run a program: which one?"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			require.ErrorContains(t, runCommand(t.Context(), test.args, &out), test.want)
			require.Empty(t, out.String())
		})
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	var o cluster.Options
	help, rest, err := parseFlags("up", []string{
		"--name", "big", "--audit", "--config", "a.yaml", "--config", "b.yaml", "--disable", "kube-scheduler,kwok-controller",
		"--enable-crds", "Stage", "--feature-gates", "A=true,B=false", "--runtime-config", "api/all=true",
	}, &o)
	require.NoError(t, err)
	require.False(t, help)
	require.Empty(t, rest)
	require.Equal(t, cluster.Options{
		Name:          "big",
		Audit:         true,
		Config:        []string{"a.yaml", "b.yaml"},
		Disable:       []string{"kube-scheduler", "kwok-controller"},
		EnableCRDs:    []string{"Stage"},
		FeatureGates:  map[string]bool{"A": true, "B": false},
		RuntimeConfig: map[string]bool{"api/all": true},
	}, o)

	_, rest, err = parseFlags("run", []string{"--name", "big", "kwok-dra", "--v=2"}, &o)
	require.NoError(t, err)
	require.Equal(t, []string{"kwok-dra", "--v=2"}, rest)
	_, rest, err = parseFlags("kubectl", []string{"--name", "big", "--", "get", "nodes", "-A"}, &o)
	require.NoError(t, err)
	require.Equal(t, []string{"get", "nodes", "-A"}, rest)
}

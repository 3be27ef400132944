package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// checkedTypes are the instance types of the groups that check-autoscaler is told of, each with its profile.
var checkedTypes = map[string]string{"g4dn.xlarge": "nvidia-t4", "Standard_NP40s": "xilinx-u250"}

// TestCheckAutoscaler: Karpenter keeps all statements of kwok-dractl check-autoscaler, but for one if its NodePools keep
// empty nodes.
func TestCheckAutoscaler(t *testing.T) {
	w := newWorld(t, cluster.Options{})
	pool := nodePool{name: "checked", types: "g4dn.xlarge, Standard_NP40s", consolidates: true}
	w.scene("checked", pool)
	require.Empty(t, w.check(1, "2m"))

	pool.consolidates = false
	w.apply("checked", pool.manifest("checked"))
	require.Equal(t, []string{"node-removed"}, w.check(2, "30s"))
}

// check plays a story, and returns the statements that Karpenter violates.
func (w *world) check(seed int, settle string) []string {
	w.Helper()
	programs, err := sidecar.Programs()
	require.NoError(w, err)
	groups := ""
	arguments := []string{
		"check-autoscaler", "--kubeconfig", w.cluster.Kubeconfig(), "-o", "json", "--seeds", "1", "--seed", fmt.Sprint(seed), "--settle", settle, "--shrink", "0",
	}
	for instanceType, profile := range checkedTypes {
		groups += fmt.Sprintf("---\n{apiVersion: v1, kind: Node, metadata: {name: %s, labels: {scene: checked, node.kubernetes.io/instance-type: %s}}}\n",
			strings.ReplaceAll(strings.ToLower(instanceType), "_", "-"), instanceType)
		arguments = append(arguments, "-f", filepath.Join(sidecar.Root(), "kustomize", "profiles", profile, "template.yaml"))
	}
	file := filepath.Join(w.TempDir(), "groups.yaml")
	require.NoError(w, os.WriteFile(file, []byte(groups), 0o600))
	check := exec.CommandContext(w.Context(), filepath.Join(programs, "kwok-dractl"), append(arguments, "-f", file)...)
	var messages strings.Builder
	check.Stderr = &messages
	out, err := check.Output()
	w.Logf("%s", messages.String())
	failed := (*exec.ExitError)(nil)
	if !errors.As(err, &failed) || failed.ExitCode() != 1 {
		require.NoError(w, err)
	}
	var report struct {
		NodesMade, NodesEnough int
		Results                []struct{ Outcome, ID, Seen string }
	}
	require.NoError(w, json.Unmarshal(out, &report))
	w.Logf("Karpenter made %d nodes, and %d would have been enough", report.NodesMade, report.NodesEnough)
	require.Positive(w, report.NodesMade)
	require.NotEmpty(w, report.Results)
	var violated []string
	for _, result := range report.Results {
		if result.Outcome != "ok" {
			w.Logf("%s %s: %s", result.Outcome, result.ID, result.Seen)
			violated = append(violated, result.ID)
		}
	}
	slices.Sort(violated)
	return violated
}

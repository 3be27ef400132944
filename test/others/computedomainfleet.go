package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// fleetRacks is how many racks a fleet has, so that it has 1,000 nodes.
const fleetRacks = 56

// fleetRuns adds racks until there are 1,000 nodes, each with a fabric and a ComputeDomain of its own, and removes them.
func fleetRuns(ctx context.Context, w *world) error {
	rack, err := os.ReadFile(filepath.Join(manifests("nvidia-compute-domains"), "rack.yaml"))
	if err != nil {
		return fmt.Errorf("read rack: %w", err)
	}
	var nodes, jobs strings.Builder
	for number := 1; number < fleetRacks; number++ {
		fabric := fmt.Sprintf("00000000-0000-0000-0000-%012d.0", number)
		for tray := range rackTrays {
			fmt.Fprintf(&nodes, "---\n%s", fleetTray(fmt.Sprintf("rack-%d-tray-%d", number, tray), fabric))
		}
		// The names in the manifest of a rack end with the number, and its Pods stay in the rack.
		suffix := "-" + strconv.Itoa(number)
		named := strings.NewReplacer("name: rack\n", "name: rack"+suffix+"\n", "rack-channel", "rack-channel"+suffix, "tray-gpus", "tray-gpus"+suffix,
			"training", "training"+suffix, "      containers:\n", "      nodeSelector: {nvidia.com/gpu.clique: "+fabric+"}\n      containers:\n")
		fmt.Fprintf(&jobs, "---\n%s", named.Replace(string(rack)))
	}
	nodesFile, jobsFile := filepath.Join(w.Logs(), "fleet-nodes.yaml"), filepath.Join(w.Logs(), "fleet-jobs.yaml")
	for file, content := range map[string]string{nodesFile: nodes.String(), jobsFile: jobs.String()} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			return fmt.Errorf("write manifest: %w", err)
		}
	}
	return w.perform(ctx, nodesFile, func() error {
		if _, err := w.Kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=5m", "nodes", "--all"); err != nil {
			return err
		}
		return w.perform(ctx, jobsFile, func() error {
			_, err := w.Kubectl(ctx, "-n", storyNamespace, "wait", "--for=jsonpath={.status.status}=Ready", "--timeout=10m", "computedomains", "--all")
			if err != nil {
				return err
			}
			_, err = w.Kubectl(ctx, "-n", storyNamespace, "wait", "--for=condition=Available", "--timeout=10m", "deployments", "--all")
			return err
		})
	})
}

// fleetTray is a node of a rack.
func fleetTray(name, fabric string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Node
metadata:
  name: %[1]s
  annotations: {kwok.x-k8s.io/node: fake}
  labels: {kubernetes.io/hostname: %[1]s, dra.kwok.x-k8s.io/profile: nvidia-gb200-nvl72, nvidia.com/gpu.clique: %[2]s}
`, name, fabric)
}

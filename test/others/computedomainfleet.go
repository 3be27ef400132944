package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// fleetRacks is how many racks a fleet has, so that it has 1,000 nodes.
const fleetRacks = 56

// fleetRuns adds racks until there are 1,000 nodes, each with a fabric and a ComputeDomain of its own, and removes them.
// The jobs come after the claim templates that NVIDIA's controller makes: kube-controller-manager may lose one of two claims
// of a Pod from the Pod's status if the template of the other comes late.
func fleetRuns(ctx context.Context, w *world) error {
	rack, err := os.ReadFile(filepath.Join(manifests("nvidia-compute-domains"), "rack.yaml"))
	if err != nil {
		return fmt.Errorf("read rack: %w", err)
	}
	var nodes, domains, jobs strings.Builder
	for number := 1; number < fleetRacks; number++ {
		fabric := fmt.Sprintf("00000000-0000-0000-0000-%012d.0", number)
		for tray := range rackTrays {
			fmt.Fprintf(&nodes, "---\n%s", fleetTray(fmt.Sprintf("rack-%d-tray-%d", number, tray), fabric))
		}
		// The names in the manifest of a rack end with the number, and its Pods stay in the rack.
		suffix := "-" + strconv.Itoa(number)
		named := strings.NewReplacer("name: rack\n", "name: rack"+suffix+"\n", "rack-channel", "rack-channel"+suffix, "tray-gpus", "tray-gpus"+suffix,
			"training", "training"+suffix, "      containers:\n", "      nodeSelector: {nvidia.com/gpu.clique: "+fabric+"}\n      containers:\n")
		domain, job, _ := strings.Cut(named.Replace(string(rack)), "\n---\n")
		fmt.Fprintf(&domains, "---\n%s\n", domain)
		fmt.Fprintf(&jobs, "---\n%s", job)
	}
	file := func(name string) string { return filepath.Join(w.Logs(), "fleet-"+name+".yaml") }
	for name, content := range map[string]string{"nodes": nodes.String(), "domains": domains.String(), "jobs": jobs.String()} {
		if err := os.WriteFile(file(name), []byte(content), 0o600); err != nil {
			return fmt.Errorf("write manifest: %w", err)
		}
	}
	return w.perform(ctx, file("nodes"), func() error {
		if _, err := w.Kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=5m", "nodes", "--all"); err != nil {
			return err
		}
		return w.perform(ctx, file("domains"), func() error {
			if err := w.awaitChannels(ctx); err != nil {
				return err
			}
			return w.perform(ctx, file("jobs"), func() error {
				_, err := w.Kubectl(ctx, "-n", storyNamespace, "wait", "--for=jsonpath={.status.status}=Ready", "--timeout=10m", "computedomains", "--all")
				if err != nil {
					return err
				}
				_, err = w.Kubectl(ctx, "-n", storyNamespace, "wait", "--for=condition=Available", "--timeout=10m", "deployments", "--all")
				return err
			})
		})
	})
}

// awaitChannels waits for the claim templates of all racks but the first.
func (w *world) awaitChannels(ctx context.Context) error {
	return until(ctx, 5*time.Minute, func(ctx context.Context) error {
		templates, err := w.Kubectl(ctx, "-n", storyNamespace, "get", "resourceclaimtemplates", "-o", "name")
		if count := strings.Count(templates, "rack-channel-"); err == nil && count != fleetRacks-1 {
			err = fmt.Errorf("count the claim templates of ComputeDomains: want %d, got %d", fleetRacks-1, count)
		}
		return err
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

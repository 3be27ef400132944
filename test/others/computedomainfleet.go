package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// fleetRacks have 1,000 nodes together.
const fleetRacks = 56

// endOfFleet bounds the removal of its racks, and of its nodes: kube-controller-manager sends 20 requests a second, for
// thousands of claims.
const endOfFleet = 15 * time.Minute

// fleetRuns adds racks with 1,000 nodes, and removes them. Each rack has a fabric and a ComputeDomain of its own.
// The jobs start one after another: kube-controller-manager before 1.37 remembers only the last 100 claims that it has
// created, and makes a second claim for a Pod whose first one has not reached its cache yet.
func fleetRuns(ctx context.Context, w *world) error {
	trays, racks := filepath.Join(w.Logs(), "trays.yaml"), filepath.Join(w.Logs(), "racks")
	jobs, err := writeRacks(trays, racks)
	if err != nil {
		return err
	}
	_, err = w.Kubectl(ctx, "apply", "-f", trays)
	if err == nil {
		err = runJobs(ctx, w, jobs)
	}
	return errors.Join(err, deleteWithin(ctx, w, endOfFleet, racks), deleteWithin(ctx, w, endOfFleet, trays))
}

// runJobs starts the jobs one after another, when all nodes are Ready.
func runJobs(ctx context.Context, w *world, jobs []string) error {
	if _, err := w.Kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=5m", "nodes", "--all"); err != nil {
		return err
	}
	for _, job := range jobs {
		if _, err := w.Kubectl(ctx, "apply", "-f", job); err != nil {
			return err
		}
		if err := awaitRacks(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// writeRacks writes the nodes of a fleet into a file, and the job of each rack into a file in a folder.
func writeRacks(trays, folder string) (jobs []string, err error) {
	rack, err := os.ReadFile(filepath.Join(manifests("nvidia-compute-domains"), "rack.yaml"))
	if err != nil {
		return nil, fmt.Errorf("read rack: %w", err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("create directory for racks: %w", err)
	}
	var nodes []any
	for number := range fleetRacks {
		fabric := fmt.Sprintf("00000000-0000-0000-0000-%012d.0", number)
		for tray := range rackTrays {
			nodes = append(nodes, newTray(fmt.Sprintf("rack-%d-tray-%d", number, tray), fabric))
		}
		job := filepath.Join(folder, fmt.Sprintf("rack-%d.yaml", number))
		if err := os.WriteFile(job, []byte(rackOf(string(rack), number, fabric)), 0o600); err != nil {
			return nil, fmt.Errorf("write manifest: %w", err)
		}
		jobs = append(jobs, job)
	}
	return jobs, writeYAML(trays, map[string]any{"apiVersion": "v1", "kind": "List", "items": nodes})
}

// awaitRacks waits until the ComputeDomains of all racks are Ready and their jobs run.
func awaitRacks(ctx context.Context, w *world) error {
	for _, condition := range [][]string{
		{"--for=jsonpath={.status.status}=Ready", "computedomains"},
		{fmt.Sprintf("--for=jsonpath={.status.availableReplicas}=%d", rackTrays), "deployments"},
	} {
		arguments := append([]string{"-n", storyNamespace, "wait", "--timeout=2m", "--all"}, condition...)
		if _, err := w.Kubectl(ctx, arguments...); err != nil {
			return err
		}
	}
	return nil
}

// rackOf renames what is in the manifest of a rack, and keeps its Pods on the rack with a fabric.
func rackOf(rack string, number int, fabric string) string {
	suffix := "-" + strconv.Itoa(number)
	return strings.NewReplacer("name: rack\n", "name: rack"+suffix+"\n", "rack-channel", "rack-channel"+suffix, "tray-gpus", "tray-gpus"+suffix,
		"training", "training"+suffix, "      containers:\n", "      nodeSelector: {nvidia.com/gpu.clique: "+fabric+"}\n      containers:\n").Replace(rack)
}

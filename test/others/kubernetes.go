package main

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"

	"golang.org/x/mod/module"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/cluster/build"
)

const kubernetesModule = "k8s.io/kubernetes"

// kubernetes are the specs of DRA itself, each with a driver of its own that kwok-dra
// knows nothing of.
var kubernetes = suite{
	name:  "kubernetes",
	title: `[Kubernetes](#kubernetes), its specs of DRA`,
	tests: build.Tests{
		Module: module.Version{Path: kubernetesModule},
		// The specs are in test/e2e/dra, but only this package runs any.
		Package: kubernetesModule + "/test/e2e",
	},
	label: "DRA",
	cluster: cluster.Options{
		FeatureGates: switchOn("DRAResourcePoolStatus", "DRAPartitionableDevicesType", "DRADeviceCompatibilityGroups",
			"DRADeviceTaintRules", "DRAOptionalNodeOperations", "DRAWorkloadResourceClaims", "GenericWorkload"),
		RuntimeConfig: switchOn("resource.k8s.io/v1alpha3", "resource.k8s.io/v1beta1", "resource.k8s.io/v1beta2",
			"scheduling.k8s.io/v1alpha2", "scheduling.k8s.io/v1beta1"),
	},
	general:       true,
	moreStages:    []string{"node/features/node-declare-features.yaml"},
	parallel:      12, // most of the time of a spec is waiting until its driver counts as gone
	complete:      filepath.Join("kubernetes", "stages", "pod-commands.yaml"),
	containerView: true,
	pluginsDir:    true,
	install:       installKubernetes,
	leftOut: []leftOut{{
		regexp.MustCompile("supports extended resources together with ResourceClaim|device plugin"),
		"they need a device plugin, which a container runs and a real kubelet calls",
	}},
}

// installKubernetes starts what the test driver of the specs reaches its sockets and files by.
func installKubernetes(ctx context.Context, w *world) (*installation, error) {
	started, err := startNodeServer(ctx, w)
	if err != nil {
		return nil, err
	}
	guarded, err := guardOwn(ctx, w)
	if err != nil {
		return nil, err
	}
	guarded.logs = started
	return guarded, nil
}

// guardOwn waits until all devices of kwok-dra's own template are published, allocated
// and prepared. The suite may leave nothing of that changed.
func guardOwn(ctx context.Context, w *world) (*installation, error) {
	if _, err := w.Kubectl(ctx, "rollout", "status", "deployment/own", "--timeout=2m"); err != nil {
		return nil, err
	}
	before, err := own(ctx, w)
	if err != nil {
		return nil, err
	}
	return &installation{stop: func() error {
		after, err := own(ctx, w)
		if err != nil {
			return err
		}
		return same(before, after)
	}}, nil
}

// own lists kwok-dra's slices, and the Pods and claims that use them, with what changes
// whenever anybody writes to one.
func own(ctx context.Context, w *world) (string, error) {
	const columns = "custom-columns=KIND:.kind,NAME:.metadata.name,UID:.metadata.uid,RESOURCEVERSION:.metadata.resourceVersion"
	slices, err := w.Kubectl(ctx, "get", "resourceslices", "--selector", "dra.kwok.x-k8s.io/managed-by=kwok-dra", "--output", columns)
	if err != nil {
		return "", err
	}
	users, err := w.Kubectl(ctx, "get", "resourceclaims,pods", "--namespace", "default", "--output", columns)
	return slices + users, err
}

func same(before, after string) error {
	if before != after {
		return fmt.Errorf("compare objects of kwok-dra's own: somebody has written to them, they were\n%sand are\n%s", before, after)
	}
	return nil
}

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// sidecars are the arguments of the kwok-dra that plays drivers and kubelets, by the values of the dimension of that name. The
// first value has none: then the slices are written once, and no claim is prepared.
var sidecars = [][]string{nil, {}, {"--node-load"}}

// newTemplate returns the template by which kwok-dra publishes the devices of a shape, and prepares them.
func (s shape) newTemplate() string {
	var attributes strings.Builder
	for i := 2; i < s.Attributes; i++ {
		fmt.Fprintf(&attributes, "      attribute%d: value-%d\n", i, i)
	}
	return fmt.Sprintf(`apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: envelope}
spec:
  driver: %s
  devices:
  - name: gpu
    count: %d
    attributes:
      model: example-80
      %s: {int: "{{ mod .Index 2 }}"}
%s    capacity: {%s: %dGi}
`, fleet.Driver, s.Devices, matchedAttribute, attributes.String(), capacity, capacityGi)
}

// startSidecar starts kwok-dra, if the shape has it. Pods then run when their claims are prepared.
func (w *world) startSidecar(ctx context.Context) error {
	if w.shape.Sidecar == 0 {
		return nil
	}
	if _, err := w.cluster.Kubectl(ctx, "apply", "-f", filepath.Join(sidecar.Root(), "stages/pod/fast/pod-ready.yaml")); err != nil {
		return err
	}
	if err := fleet.RestartKwok(ctx, w.cluster); err != nil {
		return err
	}
	pids, err := w.cluster.ComponentPIDs()
	if err != nil {
		return err
	}
	w.pids[cluster.Kwok] = pids[cluster.Kwok]
	if err := fleet.Configure(ctx, w.client, w.shape.newTemplate()); err != nil {
		return err
	}
	process, err := fleet.StartSidecar(ctx, w.cluster, w.cluster.Kubeconfig(), sidecars[w.shape.Sidecar]...)
	if err != nil {
		return err
	}
	w.sidecar = process
	w.pids[sidecarName] = process.PID()
	return nil
}

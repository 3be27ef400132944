package autoscaled

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/karpenter"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// profiles are those of the instance types of karpenter.yaml.
var profiles = []string{"nvidia-t4", "xilinx-u250"}

// nodePool is the NodePool for the groups of karpenter.yaml.
const nodePool = `
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: conformance}
spec:
  template:
    metadata:
      labels: {pool: conformance}
    spec:
      requirements:
      - {key: node.kubernetes.io/instance-type, operator: In, values: [g4dn.xlarge, Standard_NP40s]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      expireAfter: Never
  disruption:
    consolidationPolicy: WhenEmptyOrUnderutilized
    consolidateAfter: 0s
    budgets: [{nodes: "100%"}]
`

// GroupArguments are arguments of check-autoscaler: the groups of nodes that Karpenter can make in a cluster of StartKarpenter.
func GroupArguments() []string {
	arguments := []string{"-f", filepath.Join(sidecar.Root(), "test", "conformance", "autoscaled", "karpenter.yaml")}
	for _, path := range templatePaths() {
		arguments = append(arguments, "-f", path)
	}
	return arguments
}

func templatePaths() []string {
	var paths []string
	for _, profile := range profiles {
		paths = append(paths, filepath.Join(sidecar.Root(), "kustomize", "profiles", profile, "template.yaml"))
	}
	return paths
}

// Options say how Karpenter runs.
type Options struct {
	// Program is the path of Karpenter, and Kubernetes the version of the cluster.
	Program, Kubernetes string
	// ReadyAfter is how long a new node takes to be Ready, in which Karpenter has to know what it is making.
	ReadyAfter time.Duration
	// Output receives the progress of the start. Optional, default is silence.
	Output io.Writer
}

// StartKarpenter starts a cluster where kwok-dra and Karpenter have the same templates.
func StartKarpenter(ctx context.Context, o Options) (started *cluster.Cluster, err error) {
	kwok, err := sidecar.ModuleDir(ctx, "sigs.k8s.io/kwok")
	if err != nil {
		return nil, err
	}
	stages := filepath.Join(kwok, "kustomize", "stage")
	initialize, err := writeDelayed(filepath.Join(stages, "node", "fast", "node-initialize.yaml"), o.ReadyAfter)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.Remove(initialize)) }()
	c, err := cluster.Start(ctx, cluster.Options{KubernetesVersion: o.Kubernetes, Output: o.Output, Config: []string{
		initialize,
		filepath.Join(stages, "pod", "fast", "pod-delete.yaml"),
		filepath.Join(sidecar.Root(), "stages", "pod", "fast", "pod-ready.yaml"),
	}})
	if err != nil {
		return nil, err
	}
	if err := addKarpenter(ctx, c, o.Program); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// writeDelayed writes a copy of a Stage that does its work later, and returns its path.
func writeDelayed(stage string, delay time.Duration) (path string, err error) {
	content, err := os.ReadFile(stage)
	if err != nil {
		return "", fmt.Errorf("read Stage: %w", err)
	}
	const spec = "\nspec:\n"
	before, after, found := strings.Cut(string(content), spec)
	if !found {
		return "", fmt.Errorf("read Stage %s: it has no spec", stage)
	}
	file, err := os.CreateTemp("", "kwok-dra-*-"+filepath.Base(stage))
	if err != nil {
		return "", fmt.Errorf("write Stage: %w", err)
	}
	_, err = fmt.Fprintf(file, "%s%s  delay: {durationMilliseconds: %d}\n%s", before, spec, delay.Milliseconds(), after)
	return file.Name(), errors.Join(err, file.Close())
}

// addKarpenter starts kwok-dra and Karpenter in a cluster.
func addKarpenter(ctx context.Context, c *cluster.Cluster, program string) error {
	kubeconfig, err := sidecar.ServiceAccount(ctx, c)
	if err != nil {
		return err
	}
	if _, err := c.Kubectl(ctx, "apply", "-k", filepath.Join(sidecar.Root(), "kustomize", "karpenter", "rbac")); err != nil {
		return err
	}
	flags := []string{"--kubeconfig", kubeconfig}
	for _, path := range templatePaths() {
		flags = append(flags, "--config", path)
	}
	if _, err := sidecar.Start(ctx, c, flags...); err != nil {
		return err
	}
	types := filepath.Join(sidecar.Root(), "kustomize", "karpenter", "instance-types", "instance_types.json")
	if err := karpenter.Start(ctx, c, karpenter.Options{Program: program, InstanceTypes: types, Templates: templatePaths()}); err != nil {
		return err
	}
	if _, err := c.KubectlInput(ctx, strings.NewReader(nodePool), "apply", "-f", "-"); err != nil {
		return fmt.Errorf("make the NodePool: %w", err)
	}
	return nil
}

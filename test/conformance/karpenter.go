package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/cluster/gomod"
	"github.com/kwok-dra/kwok-dra/test/internal/karpenter"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// karpenterModule is that of Karpenter, in the version that test/karpenter has.
const karpenterModule = "sigs.k8s.io/karpenter"

// karpenterProfiles are those of the instance types of manifests/karpenter.yaml.
var karpenterProfiles = []string{"nvidia-t4", "xilinx-u250"}

// karpenterPool is the NodePool for the groups of manifests/karpenter.yaml.
const karpenterPool = `
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

// checkKarpenter plays on a cluster where kwok-dra and Karpenter have the same templates.
func checkKarpenter(ctx context.Context, p *player, s *subject) (report []byte, version string, err error) {
	module, err := gomod.Download(ctx, filepath.Join(p.root, "test", "karpenter"), karpenterModule)
	if err != nil {
		return nil, "", err
	}
	if _, err := karpenter.Binary(); err != nil {
		return nil, "", err
	}
	kwok, err := sidecar.ModuleDir(ctx, "sigs.k8s.io/kwok")
	if err != nil {
		return nil, "", err
	}
	stages := filepath.Join(kwok, "kustomize", "stage")
	c, err := cluster.Start(ctx, cluster.Options{KubernetesVersion: s.kubernetes, Output: os.Stderr, Config: []string{
		filepath.Join(stages, "node", "fast", "node-initialize.yaml"),
		filepath.Join(stages, "pod", "fast", "pod-delete.yaml"),
		filepath.Join(p.root, "stages", "pod", "fast", "pod-ready.yaml"),
	}})
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	arguments := p.autoscalerArguments()
	var templates []string
	for _, profile := range karpenterProfiles {
		templates = append(templates, filepath.Join(p.root, "kustomize", "profiles", profile, "template.yaml"))
	}
	for _, file := range append(templates, p.manifest("karpenter.yaml")) {
		arguments = append(arguments, "-f", file)
	}
	if err := p.startKarpenter(ctx, c, templates); err != nil {
		return nil, "", err
	}
	report, err = p.run(ctx, s, []string{"KUBECONFIG=" + c.Kubeconfig()}, append([]string{p.dractl}, arguments...))
	_, version, _ = strings.Cut(filepath.Base(module.Dir), "@v") // as in each module cache
	return report, version, err
}

// startKarpenter starts kwok-dra and Karpenter.
func (p *player) startKarpenter(ctx context.Context, c *cluster.Cluster, templates []string) error {
	kubeconfig, err := sidecar.ServiceAccount(ctx, c)
	if err != nil {
		return err
	}
	if _, err := c.Kubectl(ctx, "apply", "-k", filepath.Join(p.root, "kustomize", "karpenter", "rbac")); err != nil {
		return err
	}
	flags := []string{"--kubeconfig", kubeconfig}
	for _, file := range templates {
		flags = append(flags, "--config", file)
	}
	if _, err := sidecar.Start(ctx, c, flags...); err != nil {
		return err
	}
	types := filepath.Join(p.root, "kustomize", "karpenter", "instance-types", "instance_types.json")
	if err := karpenter.Start(ctx, c, karpenter.Options{InstanceTypes: types, Templates: templates}); err != nil {
		return err
	}
	if _, err := c.KubectlInput(ctx, strings.NewReader(karpenterPool), "apply", "-f", "-"); err != nil {
		return fmt.Errorf("make the NodePool: %w", err)
	}
	return nil
}

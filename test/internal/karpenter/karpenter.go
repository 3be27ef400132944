// Package karpenter builds Karpenter with its KWOK provider and runs it against a
// cluster, as its own process.
package karpenter

import (
	"context"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/cluster/build"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// Component is Karpenter's name among the components of a cluster.
const Component = "karpenter"

// Binary builds Karpenter and returns its path. It builds once per process.
var Binary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(sidecar.Root(), "bin", "karpenter")
	if err := sidecar.Build(moduleDir(), path, "./provider"); err != nil {
		return "", err
	}
	return path, nil
})

// BuildPatched builds Karpenter with a patch of its module, and returns its path.
func BuildPatched(ctx context.Context, patch string, output io.Writer) (string, error) {
	path := filepath.Join(sidecar.Root(), "bin", "karpenter-"+strings.TrimSuffix(filepath.Base(patch), ".patch"))
	patched := build.PatchedModule{Dir: moduleDir(), Package: "./provider", Module: "sigs.k8s.io/karpenter", Patch: patch}
	return path, patched.Build(ctx, path, output)
}

// moduleDir has the module that requires Karpenter.
func moduleDir() string { return filepath.Join(sidecar.Root(), "test", "karpenter") }

// Options say with what Karpenter runs. The zero value is Karpenter by its own
// defaults.
type Options struct {
	// Program is the path of Karpenter. Optional, default is Binary.
	Program string
	// InstanceTypes is a file of instance types as Karpenter's KWOK provider has it.
	// Optional, default are the provider's own.
	InstanceTypes string
	// Templates are files of ResourcePoolTemplates. With any, Karpenter makes nodes for
	// Pods with claims. Optional.
	Templates []string
}

// Start installs Karpenter's custom resource definitions in a cluster and starts
// Karpenter as its administrator. It takes some seconds until it is ready, and
// its NodePools with it.
func Start(ctx context.Context, c *cluster.Cluster, o Options) error {
	if o.Program == "" {
		var err error
		if o.Program, err = Binary(); err != nil {
			return err
		}
	}
	if err := installDefinitions(ctx, c); err != nil {
		return err
	}
	return c.AddComponent(Component, o.Program, o.commandArguments()...)
}

func (o Options) commandArguments() []string {
	return []string{
		// By default Karpenter makes no nodes for Pods with claims.
		"--ignore-dra-requests=" + strconv.FormatBool(len(o.Templates) == 0),
		"--instance-types-file-path=" + o.InstanceTypes,
		"--resource-pool-templates-file-paths=" + strings.Join(o.Templates, ","),
		"--disable-leader-election=true",
		// Ports that are free.
		"--metrics-port=0",
		"--health-probe-port=0",
	}
}

package karpenter

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/cluster/gomod"
)

// installDefinitions applies the custom resource definitions of Karpenter and of its KWOK
// provider, which are files of its module.
func installDefinitions(ctx context.Context, c *cluster.Cluster) error {
	module, err := gomod.Download(ctx, moduleDir(), "sigs.k8s.io/karpenter")
	if err != nil {
		return err
	}
	var files []string
	for _, definitions := range []string{"pkg/apis/crds", "kwok/apis/crds"} {
		files = append(files, "-f", filepath.Join(module.Dir, filepath.FromSlash(definitions)))
	}
	if _, err := c.Kubectl(ctx, append([]string{"apply", "--server-side"}, files...)...); err != nil {
		return fmt.Errorf("install Karpenter: %w", err)
	}
	if err := c.AwaitDefinitions(ctx); err != nil {
		return fmt.Errorf("install Karpenter: %w", err)
	}
	return nil
}

// Package process builds Karpenter with its KWOK provider and runs it against a
// cluster, as its own process.
package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/sidecar"
)

// Component is Karpenter's name among the components of a cluster.
const Component = "karpenter"

// Binary builds Karpenter and returns its path. It builds once per process.
var Binary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(sidecar.Root(), "bin", "karpenter")
	// Without -trimpath, so that what the tests have compiled is not compiled again.
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "./provider")
	build.Dir = filepath.Join(sidecar.Root(), "test", "karpenter")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build Karpenter: %w\n%s", err, output)
	}
	return path, nil
})

// Options say with what Karpenter runs.
type Options struct {
	// InstanceTypes is a file of instance types as Karpenter's KWOK provider has it.
	InstanceTypes string
	// Templates are files of ResourcePoolTemplates.
	Templates []string
}

// Start installs Karpenter's custom resource definitions in a cluster and starts
// Karpenter as its administrator. It takes some seconds until it is ready, and
// its NodePools with it.
func Start(ctx context.Context, c *cluster.Cluster, o Options) error {
	binary, err := Binary()
	if err != nil {
		return err
	}
	if err := install(ctx, c); err != nil {
		return err
	}
	return c.AddComponent(Component, binary,
		// By default Karpenter makes no nodes for Pods with claims.
		"--ignore-dra-requests=false",
		"--instance-types-file-path="+o.InstanceTypes,
		"--resource-pool-templates-file-paths="+strings.Join(o.Templates, ","),
		"--disable-leader-election=true",
		// Ports that are free.
		"--metrics-port=0",
		"--health-probe-port=0",
	)
}

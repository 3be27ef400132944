package version

import (
	"io"
	"testing"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/testing/tabletest"
)

// TestTables renders the versions of a cluster with a sidecar, and of one without.
func TestTables(t *testing.T) {
	tabletest.Golden(t, map[string]func(out io.Writer) error{
		"printVersions": func(out io.Writer) error {
			c := &command{streams: cli.Streams{Out: out}}
			found := &Versions{Client: "v0.2.0", Go: "go1.26", Platform: "linux/amd64", Kubernetes: "v1.36.3"}
			if err := c.printVersions(found, true); err != nil {
				return err
			}
			found.Sidecars = []Sidecar{{Version: "v0.2.0", Namespace: "kube-system", Pod: "kwok-controller-6d5f8c7b9-x7k2p"}}
			return c.printVersions(found, true)
		},
	})
}

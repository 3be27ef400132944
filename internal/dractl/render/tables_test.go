package render

import (
	"io"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/testing/tabletest"
)

// TestTables renders each table of the package.
func TestTables(t *testing.T) {
	made := []*resourcev1.ResourceSlice{{
		ObjectMeta: metav1.ObjectMeta{Name: tabletest.Node + "-x7k2p"},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: tabletest.Driver, NodeName: new(tabletest.Node), Devices: make([]resourcev1.Device, 8),
			Pool: resourcev1.ResourcePool{Name: tabletest.Node, ResourceSliceCount: 1},
		},
	}}
	tabletest.Golden(t, map[string]func(out io.Writer) error{
		"printSlices": func(out io.Writer) error {
			c := &command{streams: cli.Streams{Out: out}, output: output.Flag{Format: output.Table}}
			return c.printSlices(made)
		},
	}, tabletest.Node, tabletest.Driver)
}

package pod

import (
	"io"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview"
	"github.com/kwok-dra/kwok-dra/internal/testing/tabletest"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// TestTables renders each table of the package.
func TestTables(t *testing.T) {
	shown := &view{Containers: []containerview.Container{{
		Name: "main", Env: []string{"NVIDIA_VISIBLE_DEVICES=void", "GPU_UUIDS=" + tabletest.UUID + "," + tabletest.UUID + "," + tabletest.UUID},
		Mounts:      []v1alpha1.Mount{{ContainerPath: "/usr/lib/x86_64-linux-gnu/libcuda.so.1", HostPath: "/run/nvidia/driver/usr/lib/x86_64-linux-gnu/libcuda.so.570", Options: []string{"ro", "nosuid", "nodev", "bind"}}},
		DeviceNodes: []v1alpha1.DeviceNode{{Path: "/dev/nvidia-caps/nvidia-cap123", HostPath: "/dev/nvidia-caps/nvidia-cap123", Type: "c", Major: new(intstr.FromInt32(195))}},
		Devices: []containerview.Device{{
			Driver: tabletest.Driver, Pool: tabletest.Node, Device: "gpu-0", Claim: tabletest.Pod + "-gpus-x7k2p", Request: "gpu/large",
			ConsumedCapacity: map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse("40Gi")},
		}},
	}}}
	tabletest.Golden(t, map[string]func(out io.Writer) error{
		"containerTables":      func(out io.Writer) error { return shown.printView(out, output.Table) },
		"containerTables-wide": func(out io.Writer) error { return shown.printView(out, output.Wide) },
	}, tabletest.UUID, tabletest.Driver)
}

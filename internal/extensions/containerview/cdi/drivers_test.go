package cdi

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// others inject a variable for each call.
type others struct{}

func (others) Injections(_ *corev1.Pod, _ *resourcev1.ResourceClaim, results []*resourcev1.DeviceRequestAllocationResult) ([]containerview.Injection, error) {
	return []containerview.Injection{{ID: results[0].Device, Edits: v1alpha1.Edits{Env: []string{"OTHER=" + results[0].Device}}}}, nil
}

func (others) Device(*resourcev1.DeviceRequestAllocationResult) *resourcev1.Device { return nil }

func TestDrivers(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "a.json"), []byte(`{
"cdiVersion": "0.6.0", "kind": "a.example.com/file",
"devices": [{"name": "one", "containerEdits": {"env": ["A=1"], "mounts": [{"hostPath": "/etc/dra/one", "containerPath": "/etc/dra/one"}]}}]
}`), 0o600))
	returned := map[string][]string{"one": {"a.example.com/file=one"}, "none": nil, "unknown": {"a.example.com/file=two"}}
	d := &Drivers{
		Drivers: others{},
		Returned: func(_ *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) ([]string, bool) {
			ids, ok := returned[result.Device]
			return ids, ok
		},
		Specs: func() (Specs, error) { return readAlone(folder) },
		Host:  func(path string) string { return "/host" + path },
	}
	injections, err := d.Injections(nil, nil, []*resourcev1.DeviceRequestAllocationResult{{Device: "template"}, {Device: "none"}, {Device: "one"}})
	require.NoError(t, err)
	require.Equal(t, []containerview.Injection{
		{ID: "template", Edits: v1alpha1.Edits{Env: []string{"OTHER=template"}}},
		{ID: "CDI spec a.json"},
		{ID: "CDI device a.example.com/file=one", Edits: v1alpha1.Edits{
			Env: []string{"A=1"}, Mounts: []v1alpha1.Mount{{HostPath: "/host/etc/dra/one", ContainerPath: "/etc/dra/one"}},
		}},
	}, injections)

	_, err = d.Injections(nil, nil, []*resourcev1.DeviceRequestAllocationResult{{Device: "unknown", Driver: "a.example.com"}})
	require.EqualError(t, err, "device unknown of driver a.example.com: no spec of 1 in the folder of CDI specs has device a.example.com/file=two")
	require.NoError(t, syscall.Mkfifo(filepath.Join(folder, "another.json"), 0o600))
	_, err = d.Injections(nil, nil, []*resourcev1.DeviceRequestAllocationResult{{Device: "one"}})
	require.NoError(t, err, "another driver's mistake")
	_, err = d.Injections(nil, nil, []*resourcev1.DeviceRequestAllocationResult{{Device: "unknown"}})
	require.ErrorContains(t, err, "another.json: it is a FIFO")
	d.Specs = func() (Specs, error) { return readAlone(filepath.Join(folder, "none")) }
	_, err = d.Injections(nil, nil, []*resourcev1.DeviceRequestAllocationResult{{Device: "one"}})
	require.ErrorContains(t, err, "list CDI specs")
	_, err = d.Injections(nil, nil, []*resourcev1.DeviceRequestAllocationResult{{Device: "none"}})
	require.NoError(t, err, "nobody looks for specs")
}

// TestReadMetadata: the content of files with device metadata is known where somebody reads them, by the
// names that the driver gives them, and no other mount is read.
func TestReadMetadata(t *testing.T) {
	t.Parallel()
	const inContainer = "/var/run/kubernetes.io/dra-device-attributes/resourceclaims/c/gpu/a.example.com-metadata.json"
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "a.json"), []byte(`{
"cdiVersion": "0.6.0", "kind": "a.example.com/metadata",
"devices": [{"name": "one", "containerEdits": {"mounts": [{"hostPath": "/plugins/a/metadata.json", "containerPath": "`+inContainer+`"}, {"hostPath": "/etc/a", "containerPath": "/etc/a"}]}}]
}`), 0o600))
	failure := error(nil)
	d := &Drivers{
		Drivers: others{},
		Returned: func(*resourcev1.ResourceClaim, *resourcev1.DeviceRequestAllocationResult) ([]string, bool) {
			return []string{"a.example.com/metadata=one"}, true
		},
		Specs:        func() (Specs, error) { return readAlone(folder) },
		Host:         func(path string) string { return "/host" + path },
		ReadMetadata: func(path string) (string, error) { return "content of " + path, failure },
	}
	injections, err := d.Injections(nil, nil, []*resourcev1.DeviceRequestAllocationResult{{Device: "one"}})
	require.NoError(t, err)
	require.Equal(t, []containerview.MetadataFile{{Path: inContainer, Content: "content of /plugins/a/metadata.json"}}, injections[1].MetadataFiles)
	require.Equal(t, "/host/plugins/a/metadata.json", injections[1].Mounts[0].HostPath)
	failure = os.ErrNotExist
	_, err = d.Injections(nil, nil, []*resourcev1.DeviceRequestAllocationResult{{Device: "one", Driver: "a.example.com"}})
	require.EqualError(t, err, "device one of driver a.example.com: read device metadata: file does not exist")
}

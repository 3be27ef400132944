package record

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/claiminfo"
	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/root"
)

// TestPrepared: of the claims that have devices of a pool, those count that the checkpoint has.
func TestPrepared(t *testing.T) {
	t.Parallel()
	w := &world{}
	var devices []resourcev1.Device
	for _, p := range observed(t, []entry{{device: "gpu-0"}, {device: "gpu-1"}}) {
		w.node = p.node
		devices = append(devices, *p.device)
		p.claim.Status.Allocation = &resourcev1.AllocationResult{}
		p.claim.Status.Allocation.Devices.Results = []resourcev1.DeviceRequestAllocationResult{
			*p.result, {Driver: "gpu.example.com", Pool: "another", Device: p.device.Name}, {Driver: "other.example.com", Pool: "real", Device: p.device.Name},
		}
		w.claims = append(w.claims, *p.claim)
	}
	w.slices = []*resourcev1.ResourceSlice{{Spec: resourcev1.ResourceSliceSpec{Driver: "gpu.example.com", Pool: resourcev1.ResourcePool{Name: "real"}, Devices: devices}}}
	require.Len(t, w.listPrepared("gpu.example.com", "real"), 2)

	directory := t.TempDir()
	require.ErrorContains(t, w.readCheckpoint(directory), "has no folder of node real: give the directory that kwok-dra has as --plugins-dir")
	require.ErrorContains(t, w.readCheckpoint(filepath.Join(directory, "none")), "read --plugins-dir: ")
	opened, err := filepath.EvalSymlinks(directory)
	require.NoError(t, err)
	folder, err := root.Directory(opened).Make("real", w.node.UID)
	require.NoError(t, err)
	cache, err := claiminfo.Open(filepath.Join(folder.Path, claiminfo.File))
	require.NoError(t, err)
	claim := claiminfo.Claim{ResourceClaim: &w.claims[1], Drivers: map[string]claiminfo.DriverState{"gpu.example.com": {}}}
	_, err = cache.Join("pod", []claiminfo.Claim{claim})
	require.NoError(t, err)
	require.NoError(t, cache.SetDevices(claim, "gpu.example.com", []claiminfo.Device{{PoolName: "real", DeviceName: "gpu-1", CDIDeviceIDs: []string{"a=common", "a=gpu-1"}}}))
	require.NoError(t, cache.SetPrepared([]claiminfo.Claim{claim}))

	require.NoError(t, w.readCheckpoint(directory))
	w.cdi = map[string][]any{"a=gpu-1": {"edits"}}
	found := w.listPrepared("gpu.example.com", "real")
	require.Len(t, found, 1)
	require.Equal(t, "gpu-1", found[0].device.Name)
	require.Equal(t, []string{"a=common", "a=gpu-1"}, found[0].ids)
	require.Equal(t, []any{map[string]any{"id": "a=gpu-1", "containerEdits": []any{"edits"}}}, found[0].edits)
}

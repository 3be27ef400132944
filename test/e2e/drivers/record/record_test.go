// Package record proves that a fake node does as a real driver does on another node, from what
// kwok-dractl has recorded there.
package record

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/dractl"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/drivers/file"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

const (
	driver  = "file.example.com"
	devices = 4
)

// faithful has Pods show what drivers have returned to the kubelet.
const faithful = `
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: KwokDRAConfiguration
metadata: {name: faithful}
spec: {podStatus: Faithful}
`

// TestRecord has a real driver on one node, and its recording on another.
func TestRecord(t *testing.T) {
	t.Parallel()
	h := harness.New(t, harness.AllFeatures(cluster.Options{Config: harness.FastStages(t)}))
	plugins, cdi := shortDir(t), t.TempDir()
	h.Configure("configuration", faithful)
	sidecar := h.Sidecar("--plugins-dir", plugins)
	h.CreateNode("real", "real")
	start(h, plugins, cdi)
	h.Eventually(harness.Patience, func() string { return harness.Missing(slicesText(h, "real"), "file-3") })
	h.Namespace("files", driver)
	for _, claim := range []string{"a", "b"} {
		h.CreateClaim("files", "real-"+claim, harness.ClaimSpec("files"))
		h.CreatePod("files", harness.NewPod("pod-"+claim, "real", "real-"+claim))
		require.True(h, harness.IsReady(h.Running("files", "pod-"+claim)))
	}

	recorded, told := dractlRecord(h, "--node", "real", "--plugins-dir", plugins, "--cdi", cdi,
		"--metrics", sidecar.URL+"/metrics", "--node-selector", "kind=recorded")
	t.Log(recorded)
	require.Empty(h, told)
	require.Contains(h, recorded, "pod-prepare.stage.kwok.x-k8s.io/delay: ")
	require.Contains(h, recorded, "FILE=/devices/{{ .Device.name }}")

	h.Configure("recorded", recorded)
	h.CreateNode("fake", "recorded")
	h.Published("fake", driver, devices)
	require.Equal(h, devicesOf(h, "real"), devicesOf(h, "fake"))
	seen := h.Claim("files", "real-a")
	h.CreateClaim("files", "fake-a", claimOf(seen.Status.Allocation.Devices.Results[0].Device))
	h.CreatePod("files", harness.NewPod("pod-fake", "recorded", "fake-a"))
	require.True(h, harness.IsReady(h.Running("files", "pod-fake")))
	fake := h.Claim("files", "fake-a")
	require.Len(h, seen.Status.Devices, 1)
	require.Equal(h, entriesOf(h, seen), entriesOf(h, fake))
	require.Equal(h, resourceIDs(h, "pod-a", seen), resourceIDs(h, "pod-fake", fake))
}

// start runs the driver on the node.
func start(h *harness.H, plugins, cdi string) {
	h.Helper()
	folder := filepath.Join(plugins, "real")
	h.Eventually(harness.Patience, func() string {
		if _, err := os.Stat(filepath.Join(folder, "plugins_registry")); err != nil {
			return err.Error()
		}
		return ""
	})
	started, err := file.Start(h.Context(), file.Options{
		Client: h.Client, Name: driver, Node: "real", Devices: devices, Report: true, CDI: cdi,
		Registry: filepath.Join(folder, "plugins_registry"), Plugins: filepath.Join(folder, "plugins"),
	})
	require.NoError(h, err)
	h.Cleanup(started.Stop)
}

// shortDir is a folder with a path that is short enough for sockets.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kwok-dra") //nolint:usetesting // t.TempDir has the name of the test
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// dractlRecord runs the command.
func dractlRecord(h *harness.H, arguments ...string) (printed, told string) {
	h.Helper()
	var out, errOut bytes.Buffer
	command := dractl.New(cli.Streams{Out: &out, ErrOut: &errOut})
	command.SetArgs(append([]string{"record", "--kubeconfig", h.Cluster.Kubeconfig()}, arguments...))
	require.NoError(h, command.ExecuteContext(h.Context()), errOut.String())
	return out.String(), errOut.String()
}

func slicesText(h *harness.H, node string) string { return fmt.Sprint(h.SlicesOf(node)) }

func devicesOf(h *harness.H, node string) []resourcev1.Device {
	var all []resourcev1.Device
	for _, slice := range h.SlicesOf(node) {
		all = append(all, slice.Spec.Devices...)
	}
	return all
}

// claimOf claims one device.
func claimOf(name string) resourcev1.ResourceClaimSpec {
	spec := harness.ClaimSpec("files")
	spec.Devices.Requests[0].Exactly.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
		Expression: fmt.Sprintf("device.attributes[%q].name == %q", driver, name),
	}}}
	return spec
}

// entriesOf are the entries of a claim, without the name of its node.
func entriesOf(h *harness.H, claim *resourcev1.ResourceClaim) string {
	h.Helper()
	require.NotEmpty(h, claim.Status.Devices)
	node := claim.Status.Allocation.Devices.Results[0].Pool
	var text strings.Builder
	for _, entry := range claim.Status.Devices {
		require.Equal(h, node, entry.Pool)
		require.NotNil(h, entry.Data)
		fmt.Fprintf(&text, "%s %s %v %s\n", entry.Driver, entry.Device, entry.Conditions, entry.Data.Raw)
	}
	return strings.ReplaceAll(text.String(), "/"+node+"/", "/NODE/")
}

// resourceIDs waits for those of devices in the status of a Pod, and returns them without the uid of
// the claim.
func resourceIDs(h *harness.H, pod string, claim *resourcev1.ResourceClaim) string {
	h.Helper()
	text := ""
	h.Eventually(harness.Patience, func() string {
		text = ""
		for _, status := range h.Pod("files", pod).Status.ContainerStatuses {
			for _, allocated := range status.AllocatedResourcesStatus {
				text += fmt.Sprintln(allocated.Resources)
			}
		}
		text = strings.ReplaceAll(text, string(claim.UID), "UID")
		return harness.Missing(text, driver+"/file=UID-file-")
	})
	return text
}

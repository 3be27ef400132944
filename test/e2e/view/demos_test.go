package view

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/dynamic-resource-allocation/api/metadata"
	"k8s.io/dynamic-resource-allocation/devicemetadata"

	"github.com/kwok-dra/kwok-dra/test/drivers/file"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// TestDemos: what the demos of well-known drivers print is printed.
func TestDemos(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	plugins, err := os.MkdirTemp("", "p") //nolint:usetesting // its paths are too long for sockets
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(plugins)) })
	fakes, err := os.ReadFile(filepath.Join("testdata", "fakes.yaml"))
	require.NoError(t, err)
	w.Configure("fakes", string(fakes))
	w.ConfigureGeneral(harness.Patience)
	w.Sidecar("--container-view", w.directory, "--plugins-dir", plugins)
	t.Run("fakes", func(t *testing.T) {
		t.Parallel()
		w.on(t).fakes()
	})
	t.Run("file driver", func(t *testing.T) {
		t.Parallel()
		w.on(t).fileDriver(plugins)
	})
	t.Run("device metadata", func(t *testing.T) {
		t.Parallel()
		w.on(t).deviceMetadata()
	})
}

// logLoop prints what the log loop of the demos does: the variables of all containers.
func (w *world) logLoop(namespace string) (printed string) {
	w.Helper()
	for name := range strings.FieldsSeq(w.Kubectl("", "-n", namespace, "get", "pods", "-o", "jsonpath={.items[*].metadata.name}")) {
		for _, container := range w.Running(namespace, name).Spec.Containers {
			w.shows(namespace, name, container.Name)
			printed += name + " " + container.Name + ":\n"
			logs, err := w.logs(namespace, name, container.Name)
			require.NoError(w, err)
			printed += strings.Join(regexp.MustCompile(`(?m)^.*FAKE_DEVICE.*\n`).FindAllString(logs, -1), "")
		}
	}
	return printed
}

// fakes: Pods with devices of their own, that share devices, with several devices, and with the parts
// of one.
func (w *world) fakes() {
	w.CreateNode("fakes", "fakes")
	w.Eventually(harness.Patience, func() string { // a namespace gets its ServiceAccount a little later
		if _, err := w.Cluster.Kubectl(w.Context(), "apply", "-f", filepath.Join("testdata", "demo.yaml")); err != nil {
			return err.Error()
		}
		return ""
	})
	const line = `export FAKE_DEVICE_%='(FAKE-[0-9a-f-]{36})'` + "\n"
	lines := func(count int) (all string) {
		for i := range count {
			all += strings.ReplaceAll(line, "%", string(rune('0'+i)))
		}
		return all
	}
	find := func(namespace, pattern string) []string {
		w.Helper()
		printed := w.logLoop(namespace)
		found := regexp.MustCompile("^" + pattern + "$").FindStringSubmatch(printed)
		require.NotNil(w, found, "%s: %s", namespace, printed)
		return found[1:]
	}
	distinct := find("test1", "pod0 ctr0:\n"+lines(1)+"pod1 ctr0:\n"+lines(1))
	require.NotEqual(w, distinct[0], distinct[1])
	containers := find("test2", "pod0 ctr0:\n"+lines(1)+"pod0 ctr1:\n"+lines(1))
	require.Equal(w, containers[0], containers[1])
	pods := find("test3", "pod0 ctr0:\n"+lines(1)+"pod1 ctr0:\n"+lines(1))
	require.Equal(w, pods[0], pods[1])
	four := find("test4", "pod0 ctr0:\n"+lines(4))
	all := append(append(distinct, containers[0], pods[0]), four...)
	seen := map[string]bool{}
	for _, uuid := range all {
		require.False(w, seen[uuid], "%v", all)
		seen[uuid] = true
	}

	halves := find("test5", "pod0 ctr0:\n"+lines(2))
	reported := w.Entries("test5", *w.Pod("test5", "pod0").Status.ResourceClaimStatuses[0].ResourceClaimName, 2).Status.Devices
	for i := range reported {
		var data struct{ UUID, ParentUUID string }
		require.NoError(w, json.Unmarshal(reported[i].Data.Raw, &data))
		require.Equal(w, halves[i], data.UUID)
		require.Regexp(w, "^FAKE-", data.ParentUUID)
		require.False(w, seen[data.ParentUUID], "its parent is no one's")
	}
}

// fileDriver: the driver of the tutorial writes the name of the Pod to a file when it prepares its
// device, has it mounted, and removes it when it unprepares the device.
func (w *world) fileDriver(plugins string) {
	const node, driver = "files", "files.example.com"
	w.CreateNode(node, node)
	w.Namespace(node, driver)
	root := filepath.Join(plugins, node)
	w.Eventually(harness.Patience, func() string {
		if _, err := os.Stat(filepath.Join(root, "plugins_registry")); err != nil {
			return err.Error()
		}
		return ""
	})
	started, err := file.Start(w.Context(), file.Options{
		Client: w.Client, Name: driver, Node: node, Devices: 1,
		Registry: filepath.Join(root, "plugins_registry"), Plugins: filepath.Join(root, "plugins"), CDI: filepath.Join(root, "cdi"),
		Files: "/etc/dra", Host: filepath.Join(root, "host"), Metadata: true,
	})
	require.NoError(w, err)
	w.Cleanup(started.Stop)

	w.CreatePod(node, harness.NewPod("pod-with-file", node, harness.FromTemplate))
	pod := w.Running(node, "pod-with-file")
	w.shows(node, pod.Name, "c")
	w.prints("pod-with-file\n", node, pod.Name, "cat", "/etc/dra/file-0")
	w.prints("FILE=/etc/dra/file-0\n", node, pod.Name, "env")
	w.prints("file-0\n", node, pod.Name, "ls", "/etc/dra")
	require.FileExists(w, started.File("file-0"))
	require.Equal(w, []string{"file-0"}, w.metadataOf(node, pod.Name, driver))
	w.DeletePod(node, pod.Name, 1)
	w.Gone(node, pod.Name)
	require.NoFileExists(w, started.File("file-0"))
}

// deviceMetadata: a template gives containers files with the metadata of their devices.
func (w *world) deviceMetadata() {
	const node, driver = "metadata", "metadata.example.com"
	w.Configure(node, strings.Replace(harness.Template(node, driver, node, "[{name: gpu, count: 2, attributes: {model: A}}]"),
		"\n---\n", "\n  containerEdits: {deviceMetadata: {}}\n---\n", 1))
	w.CreateNode(node, node)
	w.Namespace(node, driver)
	w.CreatePod(node, harness.NewPod("pod", node, harness.FromTemplate))
	w.Running(node, "pod")
	w.shows(node, "pod", "c")
	device := w.ClaimOf(node, "pod").Status.Allocation.Devices.Results[0].Device
	require.Equal(w, []string{device}, w.metadataOf(node, "pod", driver))
}

// metadataOf lists the devices in the metadata of the only request of a Pod, as programs in its container
// read it.
func (w *world) metadataOf(namespace, pod, driver string) (names []string) {
	w.Helper()
	request := w.ClaimOf(namespace, pod).Status.Allocation.Devices.Results[0].Request
	text, err := w.exec(namespace, pod, "c", "cat", metadata.ResourceClaimTemplateFilePath(driver, w.Pod(namespace, pod).Spec.ResourceClaims[0].Name, request))
	require.NoError(w, err)
	var read metadata.DeviceMetadata
	require.NoError(w, devicemetadata.DecodeMetadataFromStream(json.NewDecoder(strings.NewReader(text)), &read))
	for _, device := range read.Requests[0].Devices {
		require.Equal(w, driver, device.Driver)
		require.NotEmpty(w, device.Attributes)
		names = append(names, device.Name)
	}
	return names
}

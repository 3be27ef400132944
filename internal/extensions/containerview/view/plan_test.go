package view

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview"
	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// prepared is a Pod whose claims are prepared.
func prepared(name string, claims ...string) *corev1.Pod {
	pod := claimstest.NewPod(name, claims...)
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(claimstest.Noon),
	}}
	return pod
}

var smi = []v1alpha1.Mount{{HostPath: "/usr/bin/nvidia-smi", ContainerPath: "/usr/bin/nvidia-smi"}}

// nvidia is a device as NVIDIA's driver publishes it.
func nvidia(uuid string, more map[string]string) containerview.Device {
	d := containerview.Device{Driver: "gpu.nvidia.com", Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
		"uuid": {StringValue: &uuid}, "productName": {StringValue: new("NVIDIA H100 80GB HBM3")},
		"driverVersion": {VersionValue: new("580.105.8")}, "cudaDriverVersion": {VersionValue: new("13.0.0")},
		"resource.kubernetes.io/pciBusID": {StringValue: new("0000:0a:00.0")},
	}, Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("81559Mi")}}}
	for name, value := range more {
		d.Attributes[resourcev1.QualifiedName(name)] = resourcev1.DeviceAttribute{StringValue: &value}
	}
	return d
}

func TestPlanFor(t *testing.T) {
	t.Parallel()
	containers := []containerview.Container{
		{Name: "setup", Init: true},
		{
			Name: "c", Env: []string{"B=2", "A=1", "PATH=/mine"}, Mounts: smi,
			DeviceNodes: []v1alpha1.DeviceNode{{Path: "/dev/nvidia0"}}, Devices: []containerview.Device{nvidia("GPU-1", nil)},
		},
	}
	p, err := planFor(prepared("p", "claim"), containers, hosts{"/v", ""})
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"setup/log": "", "setup/env": "",
		"c/log": "2026-07-20T12:00:00Z stdout F declare -x A=\"1\"\n2026-07-20T12:00:00Z stdout F declare -x B=\"2\"\n" +
			"2026-07-20T12:00:00Z stdout F declare -x PATH=\"/mine\"\n",
		"c/env": "B=2\nA=1\nPATH=/mine\n", "c/root/dev/nvidia0": "",
		"c/nvidia-smi": smiTable(gpusOf(&containers[1])), "c/nvidia-smi-L": "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n",
	}, p.Files)
	require.Equal(t, map[string]string{"c/root/usr/bin/nvidia-smi": "/v/host/usr/bin/nvidia-smi"}, p.Links)
	require.Len(t, p.Objects, 2)
	require.Equal(t, map[string]any{"logs": []any{
		map[string]any{"containers": []any{"setup"}, "logsFile": "/v/pods/uid-of-p/setup/log"},
		map[string]any{"containers": []any{"c"}, "logsFile": "/v/pods/uid-of-p/c/log"},
	}}, p.Objects[0].Object["spec"])
	require.Equal(t, map[string]any{"containers": []any{"c"}, "local": map[string]any{
		"workDir": "/v/pods/uid-of-p/c/root",
		"envs": []any{
			map[string]any{"name": "B", "value": "2"},
			map[string]any{"name": "A", "value": "1"},
			map[string]any{"name": "PATH", "value": "/v/bin:/mine"},
			map[string]any{"name": "KWOK_DRA_VIEW", "value": "/v/pods/uid-of-p/c"},
		},
	}}, p.Objects[1].Object["spec"].(map[string]any)["execs"].([]any)[1])
	for _, o := range p.Objects {
		require.Equal(t, "default/p", o.GetNamespace()+"/"+o.GetName())
		require.Equal(t, []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "uid-of-p"}}, o.GetOwnerReferences())
	}
	again, err := planFor(prepared("p", "claim"), containers, hosts{"/v", ""})
	require.NoError(t, err)
	require.Equal(t, p, again)
}

// TestHosts: a file that a real driver has made is where the driver has it, and nowhere else.
func TestHosts(t *testing.T) {
	t.Parallel()
	h := hosts{"/v", "/plugins"}
	require.Equal(t, "/plugins/node/host/etc/dra/file1", h.hostPath("/plugins/node/host/etc/dra/file1"))
	require.Equal(t, "/v/host/plugins-other/f", h.hostPath("/plugins-other/f"))
	require.Equal(t, "/v/host/etc/f", h.hostPath("/plugins/../etc/f"))
	require.Equal(t, "/v/host/etc/f", hosts{"/v", ""}.hostPath("../../etc/f"))
}

// TestLogOfShell: the log is that of the shell which the Pod has the container run.
func TestLogOfShell(t *testing.T) {
	t.Parallel()
	pod := prepared("p")
	pod.Spec.Containers[0].Command = []string{"ash", "-c"}
	p, err := planFor(pod, []containerview.Container{{Name: pod.Spec.Containers[0].Name, Env: []string{"A=1"}}}, hosts{"/v", ""})
	require.NoError(t, err)
	require.Contains(t, p.Files[pod.Spec.Containers[0].Name+"/log"], "stdout F export A='1'\n")
}

// TestDeviceMetadata: the file that a template makes is in the container, and that of a real driver is
// where the driver has it, since the driver may write it again.
func TestDeviceMetadata(t *testing.T) {
	t.Parallel()
	const folder = "/var/run/kubernetes.io/dra-device-attributes/resourceclaims/c/gpu/"
	p, err := planFor(prepared("p"), []containerview.Container{{
		Name: "c",
		Mounts: []v1alpha1.Mount{
			{HostPath: "/var/lib/kubelet/plugins/a/metadata.json", ContainerPath: folder + "a-metadata.json"},
			{HostPath: "/plugins/n/plugins/b/metadata.json", ContainerPath: folder + "b-metadata.json"},
		},
		MetadataFiles: []containerview.MetadataFile{{Path: folder + "a-metadata.json", Content: "{}\n"}},
	}}, hosts{"/v", "/plugins"})
	require.NoError(t, err)
	require.Equal(t, "{}\n", p.Files["c/root"+folder+"a-metadata.json"])
	require.Equal(t, map[string]string{"c/root" + folder + "b-metadata.json": "/plugins/n/plugins/b/metadata.json"}, p.Links)
}

// TestRoot: no path of a template leads out of the folder of the container, and nothing is written
// through a link.
func TestRoot(t *testing.T) {
	t.Parallel()
	mounts := []v1alpha1.Mount{
		{HostPath: "../../etc", ContainerPath: "/../../a"},
		{HostPath: "/b", ContainerPath: "/a/inside"},
		{HostPath: "/b", ContainerPath: "/a"},
		{HostPath: "/b", ContainerPath: "/"},
		{HostPath: "/b", ContainerPath: "rel/../b/"},
		{HostPath: "/dev", ContainerPath: "/dev"},
	}
	nodes := []v1alpha1.DeviceNode{{Path: "/dev/x"}, {Path: "/d/../../e"}, {Path: "/e/f"}}
	p, err := planFor(prepared("p"), []containerview.Container{{Name: "c", Mounts: mounts, DeviceNodes: nodes}}, hosts{"/v", ""})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"c/root/a": "/v/host/etc", "c/root/b": "/v/host/b", "c/root/dev": "/v/host/dev"}, p.Links)
	require.Equal(t, map[string]string{"c/log": "", "c/env": "", "c/root/e": ""}, p.Files)
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	long := []containerview.Container{{Name: "c", Env: []string{"A=" + strings.Repeat("x", mostInFile)}}}
	_, err := planFor(prepared("p"), long, hosts{"/v", ""})
	require.EqualError(t, err, "view of pod default/p: c/env would have 65539 bytes, more than 65536: have the container or the template give it shorter variables")

	var many []containerview.Container
	for range 10 {
		many = append(many, containerview.Container{Name: strings.Repeat("c", len(many)+1), Env: []string{"A=" + strings.Repeat("x", 30<<10)}})
	}
	_, err = planFor(prepared("p"), many, hosts{"/v", ""})
	require.ErrorContains(t, err, "more than 524288: have the containers or the templates give it fewer variables")
}

func TestWanted(t *testing.T) {
	t.Parallel()
	require.True(t, wantsView(prepared("p")))
	require.False(t, wantsView(claimstest.NewPod("p")))
	ended := prepared("p")
	ended.Status.Phase = corev1.PodSucceeded
	require.False(t, wantsView(ended))
	deleted := prepared("p")
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	require.False(t, wantsView(deleted))
}

func TestNvidiaSMI(t *testing.T) {
	t.Parallel()
	mig := func(uuid, parent string) containerview.Device {
		return nvidia(uuid, map[string]string{"profile": "1g.10gb", "parentUUID": parent})
	}
	nic := containerview.Device{Driver: "rdma.example.com", Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"uuid": {StringValue: new("x")}}}
	c := &containerview.Container{Mounts: smi, Devices: []containerview.Device{
		nvidia("GPU-1", nil), nic, mig("MIG-1", "GPU-2"), mig("MIG-2", "GPU-2"), mig("MIG-3", ""), {Driver: "gpu.nvidia.com"},
	}}
	files := nvidiaSMIFiles(c)
	require.Equal(t, `GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)
GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-2)
  MIG 1g.10gb     Device  0: (UUID: MIG-1)
  MIG 1g.10gb     Device  1: (UUID: MIG-2)
GPU 2: NVIDIA H100 80GB HBM3 (UUID: N/A)
  MIG 1g.10gb     Device  0: (UUID: MIG-3)
`, files["nvidia-smi-L"])
	lines := strings.Split(strings.TrimSuffix(files["nvidia-smi"], "\n"), "\n")
	for _, line := range lines {
		require.Len(t, line, len(whole)-1, line)
	}
	require.Contains(t, files["nvidia-smi"], "|   0  NVIDIA H100 80GB HBM3          N/A |   00000000:0A:00.0 Off |")
	require.Contains(t, lines[1], "CUDA Version: 13.0")
	require.Contains(t, files["nvidia-smi"], "|   1  H100 80GB HBM3 MIG 1g.10gb     N/A |")
	require.Contains(t, lines[8], "N/A / 81559MiB")

	require.Nil(t, nvidiaSMIFiles(&containerview.Container{Devices: c.Devices}), "nobody mounts it")
	none := nvidiaSMIFiles(&containerview.Container{Mounts: smi, Devices: []containerview.Device{nic}})
	require.Equal(t, map[string]string{"nvidia-smi": "No devices were found\n", "nvidia-smi-L": "No devices found.\n"}, none)
}

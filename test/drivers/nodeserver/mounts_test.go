package nodeserver

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newDriverPod makes a Pod with the mounts of Kubernetes' test driver, and one that has no place on a fake node.
func newDriverPod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "driver"}, Spec: corev1.PodSpec{NodeName: "node-0"}}
	var container corev1.Container
	container.Name = "pause"
	for name, paths := range map[string][2]string{
		"sockets":      {"/var/lib/kubelet/plugins/test.example.com", "/var/lib/kubelet/plugins/test.example.com"},
		"registration": {"/var/lib/kubelet/plugins_registry", "/var/lib/kubelet/plugins_registry/"},
		"cdi":          {"/var/run/cdi", "/cdi"},
		"devices":      {"/dev", "/dev"},
	} {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: paths[0]}}})
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: paths[1]})
	}
	pod.Spec.Containers = []corev1.Container{container, {Name: "other"}}
	return pod
}

func TestMountsOf(t *testing.T) {
	t.Parallel()
	require.Equal(t, []mount{
		{"/var/lib/kubelet/plugins/test.example.com", "/p/A0/plugins/test.example.com"},
		{"/var/lib/kubelet/plugins_registry", "/p/A0/plugins_registry"},
		{"/cdi", "/p/A0/run/cdi"},
	}, mountsOf(newDriverPod(), "pause", "/p/A0"))
	require.Empty(t, mountsOf(newDriverPod(), "other", "/p/A0"))
	require.Len(t, mountsOf(newDriverPod(), "", "/p/A0"), 3, "a request for a port names no container")
}

func TestLocalPath(t *testing.T) {
	t.Parallel()
	for host, local := range map[string]string{
		"/var/lib/kubelet":              "/p/A0",
		"/var/lib/kubelet/plugins/a":    "/p/A0/plugins/a",
		"/run/cdi":                      "/p/A0/run/cdi",
		"/var/lib/kubelet2":             "",
		"/var/lib/kubelet/../../../bin": "",
		"/etc/cdi":                      "",
	} {
		got, ok := localPath(host, "/p/A0")
		require.Equal(t, local, got, host)
		require.Equal(t, local != "", ok, host)
	}
}

func TestTranslate(t *testing.T) {
	t.Parallel()
	mounts := []mount{{"/var/lib/kubelet/plugins", "/p/A0/plugins"}, {"/cdi", "/p/A0/run/cdi"}}
	for argument, want := range map[string]string{
		"-rf":                                "-rf",
		"/cdi":                               "/p/A0/run/cdi",
		"/cdi/a.json":                        "/p/A0/run/cdi/a.json",
		"/cdi2/a.json":                       "/cdi2/a.json",
		"/opt/cdi/a.json":                    "/opt/cdi/a.json",
		"--file=/cdi/a.json":                 "--file=/p/A0/run/cdi/a.json",
		"base64 -d >'/cdi/a' <<EOF\nL2Nk":    "base64 -d >'/p/A0/run/cdi/a' <<EOF\nL2Nk",
		"if [ -e '/cdi' ]; then ls /cdi; fi": "if [ -e '/p/A0/run/cdi' ]; then ls /p/A0/run/cdi; fi",
		"/var/lib/kubelet/plugins/d.sock":    "/p/A0/plugins/d.sock",
	} {
		require.Equal(t, want, translate(argument, mounts))
	}
}

package version

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	apiversion "k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cluster"
)

func controller(name, image string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, Labels: map[string]string{"app": "kwok-controller"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "kwok-controller", Image: "kwok:v0.8.0"}, {Name: "kwok-dra", Image: image}}},
	}
}

// answer is one of a Pod through the API server.
type answer string

func (a answer) DoRaw(context.Context) ([]byte, error)         { return []byte(a), nil }
func (a answer) Stream(context.Context) (io.ReadCloser, error) { return nil, errors.ErrUnsupported }

// TestAsk finds the sidecars in the Pods of the kwok controller. One that does not tell its version, as older
// ones do not, has that of its image.
func TestAsk(t *testing.T) {
	t.Parallel()
	other := controller("other", "kwok-dra:v9")
	other.Labels = nil
	plain := controller("plain", "x")
	plain.Spec.Containers = plain.Spec.Containers[:1]
	moved := controller("kwok-2", "kwok-dra:latest")
	moved.Spec.Containers[1].Ports = []corev1.ContainerPort{{Name: "kwok-dra", ContainerPort: 8443}}
	client := fake.NewClientset(controller("kwok-0", "example.com:5000/kwok-dra:v0.2.0"), controller("kwok-1", "kwok-dra:latest"), moved, other, plain)
	client.PrependProxyReactor("pods", func(action clienttesting.Action) (bool, rest.ResponseWrapper, error) {
		switch get := action.(clienttesting.ProxyGetAction); get.GetName() + " " + get.GetScheme() + ":" + get.GetPort() + " " + get.GetPath() {
		case "kwok-1 http:10246 version", "kwok-2 https:8443 version":
			return true, answer(`{"gitVersion": "v0.3.0"}`), nil
		}
		return true, answer("404 page not found"), nil
	})
	client.Discovery().(*fakediscovery.FakeDiscovery).FakedServerVersion = &apiversion.Info{GitVersion: "v1.36.3"}
	found := &Versions{Client: "v0.2.0", Go: "go1.26", Platform: "linux/amd64"}
	require.NoError(t, found.askCluster(t.Context(), client))
	var out bytes.Buffer
	c := &command{streams: cli.Streams{Out: &out}}
	require.NoError(t, c.printVersions(found, true))
	require.Equal(t, `Client Version: v0.2.0
Go Version: go1.26
Platform: linux/amd64
Kubernetes Version: v1.36.3
Sidecar Version: v0.2.0 (tag of the image, Pod kube-system/kwok-0)
Sidecar Version: v0.3.0 (Pod kube-system/kwok-1)
Sidecar Version: v0.3.0 (Pod kube-system/kwok-2)
`, out.String())

	out.Reset()
	require.NoError(t, c.printVersions(&Versions{Kubernetes: "v1.36.3"}, true))
	require.Contains(t, out.String(), "Sidecar Version: unknown: no Pod of the kwok controller has the container kwok-dra; ask a program outside the cluster with kwok-dra --version\n")
	out.Reset()
	require.NoError(t, c.printVersions(&Versions{}, false))
	require.Contains(t, out.String(), "Kubernetes Version: unknown: no cluster answers\n")

	client.PrependReactor("list", "pods", func(clienttesting.Action) (bool, k8sruntime.Object, error) { return true, nil, errors.New("forbidden") })
	require.ErrorContains(t, (&Versions{}).askCluster(t.Context(), client), "list the Pods of the kwok controller: forbidden")
}

func TestTagOf(t *testing.T) {
	t.Parallel()
	for image, want := range map[string]string{
		"kwok-dra": "latest", "kwok-dra:v1": "v1", "localhost:5000/kwok-dra": "latest", "localhost:5000/a/kwok-dra:v1@sha256:abc": "v1", "a/kwok-dra@sha256:abc": "sha256:abc",
	} {
		require.Equal(t, want, imageTag(image), image)
	}
}

// TestClient prints the client's version where there is no cluster.
func TestClient(t *testing.T) {
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	t.Setenv("KUBERNETES_SERVICE_HOST", "") // or the tests run in a cluster
	for _, arguments := range [][]string{{"-o", "json"}, {"--client", "-o", "json"}} {
		var out bytes.Buffer
		command := New(cli.Streams{Out: &out}, &cluster.Flags{})
		command.SetArgs(arguments)
		require.NoError(t, command.ExecuteContext(t.Context()))
		var found Versions
		require.NoError(t, json.Unmarshal(out.Bytes(), &found))
		require.Equal(t, runtime.Version(), found.Go)
		require.Empty(t, found.Kubernetes)
	}
}

package file

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/client-go/kubernetes/fake"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"

	"github.com/kwok-dra/kwok-dra/internal/claims/templates"
	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview"
	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview/cdi"
	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview/injections"
	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
)

const driverName = "file.example.com"

// TestMetadataAsTemplates: a template with deviceMetadata gives containers the files, byte for byte, that
// the kubeletplugin library writes for a driver with the same devices.
func TestMetadataAsTemplates(t *testing.T) {
	t.Parallel()
	node, pod := claimstest.NewNode("n"), claimstest.NewPod("p", "c", "generated")
	pod.Spec.ResourceClaims[1] = corev1.PodResourceClaim{Name: "files", ResourceClaimTemplateName: new("files")}
	pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "files", ResourceClaimName: new("generated")}}
	pod.Spec.Containers = []corev1.Container{
		{Name: "both", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "c"}, {Name: "files"}}}},
		{Name: "one", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "c", Request: "b"}}}},
	}
	named, generated := claimstest.Allocated("c", pod), claimstest.Allocated("generated", pod)
	generated.Annotations = map[string]string{resourcev1.PodResourceClaimAnnotation: "files"}
	requested := func(request, device string) resourcev1.DeviceRequestAllocationResult {
		result := claimstest.Device(driverName, device)
		result.Request = request
		return result
	}
	claimstest.Allocate(named, requested("a/large", "file-0"), requested("b", "file-1"), requested("b", "file-2"))
	claimstest.Allocate(generated, requested("only", "file-3"))
	claims := map[string]*resourcev1.ResourceClaim{"c": named, "generated": generated}

	template := templates.New(configtest.SetOf(t, `
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: files}
spec:
  driver: file.example.com
  devices: [{name: file, count: 4, attributes: {index: {int: "{{ .Index }}"}, name: "file-{{ .Index }}"}}]
  containerEdits: {deviceMetadata: {}}
`), node, templates.Slices{}, nil)
	simulated, err := containerview.Of(pod, claims, &injections.Templates{Driver: template})
	require.NoError(t, err)
	written, err := containerview.Of(pod, claims, preparedBy(t, claims))
	require.NoError(t, err)
	require.Len(t, written[0].MetadataFiles, 3)
	require.Len(t, written[1].MetadataFiles, 1)
	for i := range written {
		require.Equal(t, written[i].MetadataFiles, simulated[i].MetadataFiles, written[i].Name)
	}
}

// preparedBy has a driver prepare claims, and returns what it injects.
func preparedBy(t *testing.T, claims map[string]*resourcev1.ResourceClaim) containerview.Drivers {
	t.Helper()
	root, err := os.MkdirTemp("", "m") //nolint:usetesting // its paths are too long for sockets
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(root)) })
	client := fake.NewClientset()
	var request drav1.NodePrepareResourcesRequest
	for _, claim := range claims {
		require.NoError(t, client.Tracker().Add(claim))
		request.Claims = append(request.Claims, &drav1.Claim{Namespace: claim.Namespace, Name: claim.Name, Uid: string(claim.UID)})
	}
	options := Options{
		Client: client, Name: driverName, Node: "n", Metadata: true,
		Registry: filepath.Join(root, "registry"), Plugins: filepath.Join(root, "plugins"), CDI: filepath.Join(root, "cdi"),
	}
	require.NoError(t, os.Mkdir(options.Registry, 0o755))
	driver, err := Start(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(driver.Stop)
	connection, err := grpc.NewClient("unix://"+filepath.Join(options.Plugins, driverName, "dra.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, connection.Close()) })
	answer, err := drav1.NewDRAPluginClient(connection).NodePrepareResources(t.Context(), &request)
	require.NoError(t, err)
	return &cdi.Drivers{
		Returned: func(claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) ([]string, bool) {
			for _, device := range answer.Claims[string(claim.UID)].Devices {
				if device.DeviceName == result.Device {
					return device.CdiDeviceIds, true
				}
			}
			return nil, false
		},
		Specs:   func() (cdi.Specs, error) { return cdi.Read(root, options.CDI) },
		Drivers: noTemplates{},
		ReadMetadata: func(path string) (string, error) {
			content, err := os.ReadFile(path)
			return string(content), err
		},
	}
}

// noTemplates are no drivers.
type noTemplates struct{ containerview.Drivers }

func (noTemplates) Device(*resourcev1.DeviceRequestAllocationResult) *resourcev1.Device { return nil }

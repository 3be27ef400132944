package injections

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/api/metadata"
	"k8s.io/dynamic-resource-allocation/devicemetadata"

	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

var updateTestdata = flag.Bool("update-testdata", false, "write the golden files anew")

// TestDeviceMetadata: each request that a container uses has one file, in the versions of the template.
// The file has all devices of the request, whatever else the container uses.
func TestDeviceMetadata(t *testing.T) {
	t.Parallel()
	claim := claimstest.Allocated("c")
	claimstest.Allocate(claim, requested("a/x", claimstest.Device("nic.example.com", "nic-0")),
		requested("b", claimstest.Device("nic.example.com", "nic-1")), requested("b", claimstest.Device("nic.example.com", "nic-2")))
	claim.Status.Devices = []resourcev1.AllocatedDeviceStatus{{
		Driver: "nic.example.com", Pool: "n", Device: "nic-2",
		NetworkData: &resourcev1.NetworkDeviceData{InterfaceName: "eth2", IPs: []string{"10.0.0.2/24"}, HardwareAddress: "02:00:00:00:00:02"},
	}}
	const inContainer = "/var/run/kubernetes.io/dra-device-attributes/resourceclaims/c/"
	const onHost = "/var/lib/kubelet/plugins/nic.example.com/dra-device-metadata/default_c/"
	for name, test := range map[string]struct {
		metadata string
		names    []string
		// files are the requests whose files the container has, and the golden files with their content.
		files []string
	}{
		"all":      {"{}", []string{""}, []string{"a", "b"}},
		"twice":    {"{}", []string{"b", "b"}, []string{"b"}},
		"v1alpha1": {"{versions: [v1alpha1]}", []string{"a"}, []string{"a"}},
		"v1beta1":  {"{versions: [v1beta1]}", []string{"b"}, []string{"b"}},
		"none":     {"{}", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			views, err := viewsOf(t, `---
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: nics}
spec:
  driver: nic.example.com
  devices: [{name: nic, count: 3, attributes: {mac: "02:00:00:00:00:0{{ .Index }}", vfs: [1, 2]}}]
  containerEdits: {deviceMetadata: `+test.metadata+"}\n", claim.DeepCopy(), naming(test.names...))
			require.NoError(t, err)
			require.Len(t, views[0].MetadataFiles, len(test.files))
			require.Len(t, views[0].Mounts, len(test.files))
			for i, request := range test.files {
				file := views[0].MetadataFiles[i]
				require.Equal(t, inContainer+request+"/nic.example.com-metadata.json", file.Path)
				require.Equal(t, v1alpha1.Mount{HostPath: onHost + request + "/metadata.json", ContainerPath: file.Path, Options: []string{"ro", "bind"}}, views[0].Mounts[i])
				golden := filepath.Join("testdata", "metadata", name+"-"+request+".json")
				if *updateTestdata {
					require.NoError(t, os.WriteFile(golden, []byte(file.Content), 0o600))
				}
				want, err := os.ReadFile(golden)
				require.NoError(t, err)
				require.Equal(t, string(want), file.Content)
				var decoded metadata.DeviceMetadata
				require.NoError(t, devicemetadata.DecodeMetadataFromStream(json.NewDecoder(strings.NewReader(file.Content)), &decoded), "readers of it read it")
				require.Equal(t, "c", decoded.Name)
			}
		})
	}
}

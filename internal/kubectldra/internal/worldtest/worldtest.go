// Package worldtest has clusters of a few objects for tests of the plugin.
package worldtest

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
)

// Node is a node with two GPUs, and their class.
const Node = `
apiVersion: v1
kind: Node
metadata: {name: gpu-0}
status: {allocatable: {cpu: "8", memory: 32Gi, pods: "110"}, conditions: [{type: Ready, status: "True"}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: gpu-0}
spec:
  driver: gpu.example.com
  nodeName: gpu-0
  pool: {name: gpu-0, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0}, {name: gpu-1}]
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: device.driver == "gpu.example.com"}}]}
---
`

// Holder is a Pod that has one of the GPUs.
const Holder = `
apiVersion: v1
kind: Pod
metadata: {name: holder, namespace: team, uid: holder}
spec:
  nodeName: gpu-0
  priority: -5
  containers: [{name: main, image: i}]
  resourceClaims: [{name: gpu, resourceClaimName: held}]
status: {phase: Running}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: held, namespace: team, uid: held}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu, allocationMode: ExactCount, count: 1}}]}}
status:
  allocation:
    devices: {results: [{request: gpu, driver: gpu.example.com, pool: gpu-0, device: gpu-0}]}
    nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [gpu-0]}]}]}
  reservedFor: [{resource: pods, name: holder, uid: holder}]
---
`

// Client is a client of a cluster with objects in YAML.
func Client(t *testing.T, objects ...string) *fake.Clientset {
	t.Helper()
	var all []runtime.Object
	for document := range bytes.SplitSeq([]byte(strings.Join(objects, "\n---\n")), []byte("\n---\n")) {
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(document, nil, nil)
		require.NoError(t, err, "%s", document)
		all = append(all, object)
	}
	return fake.NewClientset(all...)
}

// Forbid refuses to list resources in all namespaces.
func Forbid(client *fake.Clientset, resources ...string) {
	for _, resource := range resources {
		client.PrependReactor("list", resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
			return action.GetNamespace() == "", nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", nil)
		})
	}
}

package claims

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// The objects that the tests are made of.
var (
	newNode       = claimstest.NewNode
	newPod        = claimstest.NewPod
	allocated     = claimstest.Allocated
	allocate      = claimstest.Allocate
	device        = claimstest.Device
	template      = claimstest.Template
	configuration = claimstest.Configuration
	consumer      = claimstest.Consumer
	say           = claimstest.Say
	statusesOf    = claimstest.StatusesOf
	noon          = claimstest.Noon
)

// realNode is a Node with a kubelet.
func realNode(name string) *corev1.Node {
	node := newNode(name)
	node.Annotations = nil
	return node
}

// newSlice is what kwok-dra publishes of a driver's devices on a node.
func newSlice(driver, node string) *resourcev1.ResourceSlice {
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{
		Name: driver + "-" + node, Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue},
	}}
	slice.Spec = resourcev1.ResourceSliceSpec{Driver: driver, NodeName: &node, Pool: resourcev1.ResourcePool{Name: node}, Devices: []resourcev1.Device{{Name: "gpu-0"}}}
	return slice
}

// countPrepared counts the claims that are prepared for any Pod.
func (s *account) countPrepared() int {
	_, all := s.countInUse()
	return all
}

package generate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
)

// profileLabel selects the nodes of a profile.
const profileLabel = v1alpha1.GroupName + "/profile"

// resources are those of the nodes that `kwokctl scale node` makes.
var resources = corev1.ResourceList{
	corev1.ResourceCPU:    resource.MustParse("32"),
	corev1.ResourceMemory: resource.MustParse("256Gi"),
	corev1.ResourcePods:   resource.MustParse("110"),
}

// profileNodes makes fake nodes with the hardware of a profile, numbered from
// first.
func profileNodes(profile, prefix string, first, count int) []*corev1.Node {
	nodes := make([]*corev1.Node, count)
	for i := range nodes {
		name := fmt.Sprintf("%s-%d", prefix, first+i)
		nodes[i] = &corev1.Node{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
			ObjectMeta: metav1.ObjectMeta{
				Name:        name,
				Annotations: map[string]string{lifecycle.NodeAnnotation: lifecycle.FakeValue},
				Labels:      map[string]string{"type": "kwok", corev1.LabelHostname: name, profileLabel: profile},
			},
			Status: corev1.NodeStatus{Allocatable: resources, Capacity: resources},
		}
	}
	return nodes
}

package target

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// findUsers names a user of each object that something else uses: claims and Pods of
// DeviceClasses, nodes of other targets, and fake nodes of others that have the devices of a template.
func (p *Plan) findUsers(seen *Observed) map[string]string {
	users, removed := map[string]string{}, map[string]bool{}
	for class, user := range seen.Users {
		users[classKind+"/"+class] = user
	}
	for i := range p.RemoveNodes {
		removed[p.RemoveNodes[i].Name] = true
	}
	for i := range seen.Nodes {
		node := &seen.Nodes[i]
		name, has := node.Labels[v1alpha1.ScaleLabel]
		switch {
		case node.DeletionTimestamp != nil || removed[node.Name]:
		case has:
			for _, key := range usedObjects(node) {
				users[key] = "the nodes of " + name
			}
		case node.Annotations[lifecycle.NodeAnnotation] == lifecycle.FakeValue:
			whole := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: node.Labels}}
			for _, template := range slices.Concat(slices.Collect(maps.Values(devices.SelectForNode(seen.Templates, whole).ByDriver))...) {
				users[v1alpha1.ResourcePoolTemplateKind+"/"+template.Name] = "Node " + node.Name
			}
		}
	}
	return users
}

package target

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
)

// removeObjects removes those of the objects that scale has made and nothing else uses:
// templates, then the DeviceClasses that no template needs that stays.
func (p *Plan) removeObjects(uses []string, seen *Observed) {
	users := p.usersOf(seen)
	for _, kind := range []string{v1alpha1.ResourcePoolTemplateKind, classKind} {
		for _, object := range seen.Objects {
			key := keyOf(object)
			isUsed := slices.Contains(uses, key)
			switch {
			case object.GetKind() != kind || !isOwned(object):
				continue
			case isUsed && users[key] == "":
				p.Remove = append(p.Remove, object)
				continue
			case isUsed:
				p.Kept = append(p.Kept, fmt.Sprintf("%s %s stays: used by %s", kind, object.GetName(), users[key]))
			}
			for _, used := range usesOf(object) {
				users[used] = cmp.Or(users[used], kind+" "+object.GetName())
			}
		}
	}
	slices.Sort(p.Kept)
}

// usersOf names a user of each object that something else uses: claims and Pods of
// DeviceClasses, nodes of other targets, and fake nodes of others that have the devices of a template.
func (p *Plan) usersOf(seen *Observed) map[string]string {
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
			for _, key := range usesOf(node) {
				users[key] = "the nodes of " + name
			}
		case node.Annotations[lifecycle.NodeAnnotation] == lifecycle.FakeValue:
			whole := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: node.Labels}}
			for _, template := range slices.Concat(slices.Collect(maps.Values(devices.ForDriver(seen.Templates, whole)))...) {
				users[v1alpha1.ResourcePoolTemplateKind+"/"+template.Name] = "Node " + node.Name
			}
		}
	}
	return users
}

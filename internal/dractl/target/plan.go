package target

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/extensions/util/natural"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// Observed is what the cluster has.
type Observed struct {
	// Nodes are all nodes, whoever made them.
	Nodes []metav1.PartialObjectMetadata
	// Pods counts the Pods on nodes that would be lost with them.
	Pods map[string]int
	// Objects are the templates and DeviceClasses of the cluster.
	Objects []*unstructured.Unstructured
	// Templates are in force: those of the objects, and those of a ConfigMap.
	Templates []*devices.Template
	// Users has for DeviceClasses a claim, a claim template or a Pod that asks for their devices.
	Users map[string]string
}

// Plan is what leads from what is there to as many nodes as are wanted.
type Plan struct {
	// Make are objects and Nodes to make, in this order.
	Make  []*unstructured.Unstructured
	Nodes []*corev1.Node
	// RemoveNodes are removed first, then Remove in its order.
	RemoveNodes []metav1.PartialObjectMetadata
	Remove      []*unstructured.Unstructured
	// Kept says what stays though the target is gone, and why.
	Kept []string
	// Foreign are nodes of others that have names of the target.
	Foreign []string
	// Unowned are templates and DeviceClasses of others that are used as they are.
	Unowned []string
	// Different is a template of others that has the name of another one of the target.
	Different string
	// Have are the names of the target's nodes that are there and stay.
	Have []string
}

// New plans to have that many nodes of a target.
func New(t *Target, want int, seen *Observed) *Plan {
	p := &Plan{}
	own, taken := ownNodes(t.Name, seen)
	live := map[string]*unstructured.Unstructured{}
	for _, object := range seen.Objects {
		live[objectKey(object)] = object
	}
	for _, object := range t.Objects {
		found := live[objectKey(object)]
		var carried *devices.Template
		if object.GetKind() == v1alpha1.ResourcePoolTemplateKind {
			carried = findTemplate(seen.Templates, object.GetName())
		}
		switch {
		case found != nil && isOwned(found), found == nil && carried == nil:
			p.Make = append(p.Make, object)
			continue
		case carried != nil && !equality.Semantic.DeepEqual(carried.ResourcePoolTemplateSpec, findTemplate(t.Templates, object.GetName()).ResourcePoolTemplateSpec):
			p.Different = object.GetName()
		}
		p.Unowned = append(p.Unowned, object.GetKind()+" "+object.GetName())
	}
	if len(own) > want {
		slices.SortStableFunc(own, func(a, b metav1.PartialObjectMetadata) int {
			return cmp.Or(cmp.Compare(min(seen.Pods[a.Name], 1), min(seen.Pods[b.Name], 1)), natural.Compare(b.Name, a.Name))
		})
		p.RemoveNodes, own = own[:len(own)-want], own[len(own)-want:]
	}
	for i := range own {
		p.Have = append(p.Have, own[i].Name)
	}
	for number := 0; len(own)+len(p.Nodes) < want; number++ {
		node := t.Nodes(t.Prefix(), number, 1)[0]
		switch isOwn, isTaken := taken[node.Name]; {
		case !isTaken:
			p.Nodes = append(p.Nodes, node)
		case !isOwn:
			p.Foreign = append(p.Foreign, node.Name)
		}
	}
	return p
}

// Delete plans to remove all that was made for a target, or for all targets if it has no name. Its name is
// enough.
func Delete(t *Target, seen *Observed) *Plan {
	p := &Plan{}
	p.RemoveNodes, _ = ownNodes(t.Name, seen)
	uses := sets.New(t.uses...)
	for i := range p.RemoveNodes {
		uses.Insert(usedObjects(&p.RemoveNodes[i])...)
	}
	if t.Name == "" {
		for _, object := range seen.Objects {
			uses.Insert(objectKey(object))
		}
	}
	users := p.findUsers(seen)
	for _, kind := range []string{v1alpha1.ResourcePoolTemplateKind, classKind} {
		for _, object := range seen.Objects {
			key := objectKey(object)
			isUsed := uses.Has(key)
			switch {
			case object.GetKind() != kind || !isOwned(object):
				continue
			case isUsed && users[key] == "":
				p.Remove = append(p.Remove, object)
				continue
			case isUsed:
				p.Kept = append(p.Kept, fmt.Sprintf("%s %s stays: used by %s", kind, object.GetName(), users[key]))
			}
			for _, used := range usedObjects(object) {
				users[used] = cmp.Or(users[used], kind+" "+object.GetName())
			}
		}
	}
	slices.Sort(p.Kept)
	return p
}

// ownNodes returns the nodes of a target, or of all with an empty name, that are not being
// deleted, and for the names of all nodes whether they are of the target.
func ownNodes(name string, seen *Observed) (own []metav1.PartialObjectMetadata, taken map[string]bool) {
	taken = make(map[string]bool, len(seen.Nodes))
	for i := range seen.Nodes {
		node := &seen.Nodes[i]
		value, has := node.Labels[v1alpha1.ScaleLabel]
		isOwn := has && (name == "" || value == name)
		taken[node.Name] = isOwn
		if isOwn && node.DeletionTimestamp == nil {
			own = append(own, *node)
		}
	}
	return own, taken
}

func findTemplate(templates []*devices.Template, name string) *devices.Template {
	for _, template := range templates {
		if template.Name == name {
			return template
		}
	}
	return nil
}

func isOwned(object *unstructured.Unstructured) bool {
	_, has := object.GetLabels()[v1alpha1.ScaleLabel]
	return has
}

func usedObjects(object metav1.Object) []string {
	return strings.Split(object.GetAnnotations()[v1alpha1.ScaleUsesAnnotation], ",")
}

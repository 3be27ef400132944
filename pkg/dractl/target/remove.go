package target

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
			if object.GetKind() != kind || !isOwned(object) || !slices.Contains(uses, key) {
				continue
			}
			user := users[key]
			if kind == classKind {
				user = cmp.Or(user, p.templateFor(object, seen.Templates))
			}
			if user != "" {
				p.Kept = append(p.Kept, fmt.Sprintf("%s %s stays: used by %s", kind, object.GetName(), user))
				continue
			}
			p.Remove = append(p.Remove, object)
		}
	}
	slices.Sort(p.Kept)
}

// usersOf names a user of each object that something else uses: claims and Pods of
// DeviceClasses, nodes of other targets, and fake nodes of others that a template selects.
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
			for _, template := range seen.Templates {
				if template.Selects(whole) {
					users[v1alpha1.ResourcePoolTemplateKind+"/"+template.Name] = "Node " + node.Name
				}
			}
		}
	}
	return users
}

// templateFor names a template that stays and whose devices the DeviceClass is for, as far as
// its selectors show.
func (p *Plan) templateFor(class *unstructured.Unstructured, templates []*devices.Template) string {
	for _, template := range templates {
		key := v1alpha1.ResourcePoolTemplateKind + "/" + template.Name
		isRemoved := slices.ContainsFunc(p.Remove, func(object *unstructured.Unstructured) bool { return keyOf(object) == key })
		if !isRemoved && mayNameDriver(class, template.Driver) {
			return v1alpha1.ResourcePoolTemplateKind + " " + template.Name
		}
	}
	return ""
}

// mayNameDriver reports whether a DeviceClass has the driver in a selector, or no selectors.
func mayNameDriver(class *unstructured.Unstructured, driver string) bool {
	selectors, _, _ := unstructured.NestedSlice(class.Object, "spec", "selectors")
	return len(selectors) == 0 || slices.ContainsFunc(selectors, func(selector any) bool {
		expression, _, _ := unstructured.NestedString(selector.(map[string]any), "cel", "expression")
		return strings.Contains(expression, `"`+driver+`"`) || strings.Contains(expression, "'"+driver+"'")
	})
}

package target

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/dractl/fleet"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// resources are those of the nodes that `kwokctl scale node` makes.
var resources = corev1.ResourceList{
	corev1.ResourceCPU:    resource.MustParse("32"),
	corev1.ResourceMemory: resource.MustParse("256Gi"),
	corev1.ResourcePods:   resource.MustParse("110"),
}

// Nodes makes fake nodes with the devices of the target: PREFIX-FIRST and those that
// follow.
func (t *Target) Nodes(prefix string, first, count int) []*corev1.Node {
	nodes := make([]*corev1.Node, count)
	for i := range nodes {
		nodes[i] = t.newNode(prefix + "-" + strconv.Itoa(first+i))
	}
	return nodes
}

func (t *Target) newNode(name string) *corev1.Node {
	node := &corev1.Node{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Annotations: map[string]string{
				lifecycle.NodeAnnotation:     lifecycle.FakeValue,
				v1alpha1.ScaleUsesAnnotation: strings.Join(t.uses, ","),
			},
			Labels: map[string]string{"type": "kwok", corev1.LabelHostname: name, v1alpha1.ScaleLabel: t.Name},
		},
		Status: corev1.NodeStatus{Allocatable: resources, Capacity: resources},
	}
	maps.Copy(node.Labels, t.labels)
	return node
}

// chooseLabels finds the labels with which all templates select a node.
func (t *Target) chooseLabels() error {
	t.labels = map[string]string{}
	for i, profile := range t.profiles {
		if i == 0 {
			t.labels[v1alpha1.ProfileLabel] = profile
		}
		if len(t.profiles) > 1 {
			t.labels[v1alpha1.ProfileLabelPrefix+profile] = ""
		}
	}
	probe := t.newNode(t.Prefix() + "-0")
	before := len(probe.Labels)
	var names []string
	for i, template := range t.Templates {
		if !fleet.LabelFor(probe, template, t.Templates[:i]) {
			besides := ""
			if i > 0 {
				besides = " that is also for " + strings.Join(names, ", ")
			}
			return fmt.Errorf("template %s: spec.nodeSelector: no labels select a node for it%s: make the nodes yourself, or change the selector", template.Name, besides)
		}
		names = append(names, template.Name)
	}
	if len(probe.Labels) == before {
		return nil
	}
	own := t.newNode(probe.Name).Labels
	for key, value := range probe.Labels {
		if _, has := own[key]; !has {
			t.labels[key] = value
		}
	}
	return nil
}

package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// Counts are how many nodes to make for templates, by their names; under "" for
// those that are not named.
type Counts map[string]int

// AddTo adds the flag.
func (c *Counts) AddTo(command *cobra.Command) {
	command.Flags().Var(c, "nodes", "number of nodes to make for each template, or TEMPLATE=NUMBER,...")
}

// Set implements pflag.Value: "4", or "h100=4,l4=2".
func (c *Counts) Set(text string) error {
	if *c == nil {
		*c = Counts{}
	}
	for part := range strings.SplitSeq(text, ",") {
		name, number, named := strings.Cut(part, "=")
		if !named {
			name, number = "", part
		}
		count, err := strconv.Atoi(number)
		if err != nil || count < 0 || named && name == "" {
			return fmt.Errorf("%q: must be a number of nodes to make, or TEMPLATE=NUMBER; give files of nodes with -f", part)
		}
		(*c)[name] = count
	}
	return nil
}

// String implements pflag.Value.
func (c *Counts) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(*c)) {
		parts = append(parts, strings.TrimPrefix(name+"="+strconv.Itoa((*c)[name]), "="))
	}
	return strings.Join(parts, ",")
}

// Type implements pflag.Value.
func (c *Counts) Type() string { return "counts" }

// Nodes makes nodes that templates select, as many as are asked for.
func (c *Counts) Nodes(templates []*devices.Template) ([]*corev1.Node, error) {
	var nodes []*corev1.Node
	var names []string
	for _, template := range templates {
		names = append(names, template.Name)
		count, named := (*c)[template.Name]
		if !named {
			count = (*c)[""]
		}
		for i := range count {
			node, err := newNodeFor(template, i)
			if err != nil {
				return nil, err
			}
			nodes = append(nodes, node)
		}
	}
	for name := range *c {
		if name == "" || slices.Contains(names, name) {
			continue
		}
		advice := "give its file with -f"
		if nearest := NearestName(name, names); nearest != "" {
			advice = "did you mean " + nearest + "?"
		}
		return nil, fmt.Errorf("--nodes %s: there is no ResourcePoolTemplate %q in the files: %s", c, name, advice)
	}
	return nodes, nil
}

// newNodeFor makes a node that the template selects, with the labels of all terms of
// its selector, so that Pods find it by each of them.
func newNodeFor(template *devices.Template, index int) (*corev1.Node, error) {
	name := template.Name + "-" + strconv.Itoa(index)
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: UID(name),
			Labels:      map[string]string{corev1.LabelHostname: name},
			Annotations: map[string]string{lifecycle.NodeAnnotation: lifecycle.FakeValue},
		},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	if template.NodeSelector == nil {
		return node, nil
	}
	for i := range template.NodeSelector.NodeSelectorTerms {
		addTermLabels(node, &template.NodeSelector.NodeSelectorTerms[i])
	}
	if !template.Selects(node) {
		return nil, fmt.Errorf("template %s: nodeSelector: no node can be made for it: give Nodes with -f", template.Name)
	}
	return node, nil
}

// UID makes the UID of a node that has none. Templates derive the UUIDs of devices from it, so all commands
// make the same one.
func UID(name string) types.UID {
	return types.UID(uuid.NewSHA1(uuid.NameSpaceDNS, []byte(v1alpha1.GroupName+"/"+name)).String())
}

// LabelFor gives the node the labels with which the template selects it: those of the first
// term with which the others still select it. It reports whether there is one.
func LabelFor(node *corev1.Node, template *devices.Template, others []*devices.Template) bool {
	if template.Selects(node) {
		return true
	}
	for i := range template.NodeSelector.NodeSelectorTerms {
		labelled := node.DeepCopy()
		addTermLabels(labelled, &template.NodeSelector.NodeSelectorTerms[i])
		if template.Selects(labelled) && !slices.ContainsFunc(others, func(other *devices.Template) bool { return !other.Selects(labelled) }) {
			node.Labels = labelled.Labels
			return true
		}
	}
	return false
}

func addTermLabels(node *corev1.Node, term *corev1.NodeSelectorTerm) {
	for _, requirement := range term.MatchExpressions {
		if _, taken := node.Labels[requirement.Key]; taken {
			continue
		}
		switch requirement.Operator {
		case corev1.NodeSelectorOpIn:
			node.Labels[requirement.Key] = requirement.Values[0]
		case corev1.NodeSelectorOpExists:
			node.Labels[requirement.Key] = ""
		}
	}
}

package fleet

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// TestNodesOfAllTerms gives a node the labels by which Pods may look for it.
func TestNodesOfAllTerms(t *testing.T) {
	t.Parallel()
	const document = `
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: t}
spec:
  driver: d.example.com
  nodeSelector:
    nodeSelectorTerms:
    - matchExpressions: [{key: type, operator: In, values: [large, small]}, {key: kind, operator: NotIn, values: [x]}]
    - matchExpressions: [{key: kind, operator: In, values: [good]}, {key: any, operator: Exists}]
  devices: [{name: dev}]
`
	template := &v1alpha1.ResourcePoolTemplate{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(document), template))
	templates := []*v1alpha1.ResourcePoolTemplate{template}
	nodes, err := (&Counts{"": 2}).Nodes(templates)
	require.NoError(t, err)
	require.Len(t, nodes, 2)
	require.Equal(t, map[string]string{"kubernetes.io/hostname": "t-1", "type": "large", "kind": "good", "any": ""}, nodes[1].Labels)

	template.Spec.NodeSelector.NodeSelectorTerms = []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "n", Operator: corev1.NodeSelectorOpGt, Values: []string{"1"}}}}}
	_, err = (&Counts{"": 1}).Nodes(templates)
	require.EqualError(t, err, "template t: nodeSelector: no node can be made for it: give Nodes with -f")
}

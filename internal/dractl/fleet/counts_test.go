package fleet

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
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
	nodes, err := (&Counts{"": 2}).Nodes(configtest.SetOf(t, document).Templates)
	require.NoError(t, err)
	require.Len(t, nodes, 2)
	require.Equal(t, map[string]string{"kubernetes.io/hostname": "t-1", "type": "large", "kind": "good", "any": ""}, nodes[1].Labels)

	unmet := strings.NewReplacer("operator: NotIn, values: [x]", "operator: DoesNotExist", "operator: In, values: [good]", `operator: Gt, values: ["1"]`).Replace(document)
	_, err = (&Counts{"": 1}).Nodes(configtest.SetOf(t, strings.Replace(unmet, "key: type, operator: In, values: [large, small]", `key: type, operator: Gt, values: ["1"]`, 1)).Templates)
	require.EqualError(t, err, "template t: nodeSelector: no node can be made for it: give Nodes with -f")
}

package simulator

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOwnClaim names each Pod's own claim, though Pods that ask for the same share
// the search.
func TestOwnClaim(t *testing.T) {
	t.Parallel()
	world := gpus(1, 1)
	pods := parse(t, world, pod("a", one)+pod("b", one)+pod("c", one))
	require.Equal(t, "a: node-0000 gpu=gpu-0\n"+
		"b:; the only device of class gpu is allocated (default/a 1); request gpu wants 1; nearest: node node-0000 lacks 1\n"+
		"c:; the only device of class gpu is allocated (default/a 1); request gpu wants 1; nearest: node node-0000 lacks 1", outcome(t, world, pods))
}

// TestOwnClaimElsewhere has Pods whose claims have devices on another node.
func TestOwnClaimElsewhere(t *testing.T) {
	t.Parallel()
	world := gpus(1, 1)
	var text strings.Builder
	for _, name := range []string{"a", "b"} {
		text.WriteString(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: of-` + name + `}
spec: {devices: ` + one + `}
status: {allocation: {nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [gone]}]}]}, devices: {results: []}}}
---
` + strings.Replace(sharing(name, ""), "shared", "of-"+name, 1))
	}
	pods := parse(t, world, text.String())
	require.Equal(t, "a:; claim of-a has its devices already, by claim default/of-a without a Pod, and the Pod cannot go there: no node reaches it, so delete the claim\nb:; claim of-b has its devices already, by claim default/of-b without a Pod, and the Pod cannot go there: no node reaches it, so delete the claim", outcome(t, world, pods))
}

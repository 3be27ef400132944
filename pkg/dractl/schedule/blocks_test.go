package schedule

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/pkg/dractl/cli"
)

// TestOwnClaim names each Pod's own claim, though Pods that ask for the same share
// the search.
func TestOwnClaim(t *testing.T) {
	t.Parallel()
	world := gpus(1, 1)
	pods := parse(t, world, pod("a", one)+pod("b", one)+pod("c", one))
	require.Equal(t, "a: node-0000 gpu=gpu-0\n"+
		"b:; node node-0000: claim b-gpu, request gpu wants 1: devices 1, class gpu 1, free 0\n"+
		"c:; node node-0000: claim c-gpu, request gpu wants 1: devices 1, class gpu 1, free 0", outcome(t, world, pods))
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
	require.Equal(t, "a:; node node-0000: claim of-a: its devices are elsewhere\nb:; node node-0000: claim of-b: its devices are elsewhere", outcome(t, world, pods))
}

// TestBlocks has Pods that are alike in one block, with and without a search, and
// Pods of another namespace in another.
func TestBlocks(t *testing.T) {
	t.Parallel()
	var in strings.Builder
	for i := range 10 {
		in.WriteString(pod("train-"+strconv.Itoa(i), `{requests: [{name: gpu, exactly: {deviceClassName: example-gpu, count: 9}}]}`))
		in.WriteString(pod("lost-"+strconv.Itoa(i), `{requests: [{name: gpu, exactly: {deviceClassName: lost}}]}`))
	}
	in.WriteString(strings.ReplaceAll(pod("train-0", `{requests: [{name: gpu, exactly: {deviceClassName: example-gpu, count: 9}}]}`), "metadata: {", "metadata: {namespace: other, "))
	out, _, err := run(t, in.String(), append(files("templates.yaml", "classes.yaml"), "-f", "-", "--nodes", "example-h100=2")...)
	require.ErrorIs(t, err, cli.ErrNegative)
	_, reasons, _ := strings.Cut(out, "\n\n")
	require.Equal(t, `Pod default/train-0 fits on no node (10 Pods like this):
  nodes example-h100-0, example-h100-1: claim train-0-gpu, request gpu wants 9: devices 8, class example-gpu 8

Pod default/lost-0 fits on no node (10 Pods like this):
  resourceclaim "lost-0-gpu", request gpu: deviceclass "lost" not found: give its file with -f

Pod other/train-0 fits on no node:
  nodes example-h100-0, example-h100-1: claim train-0-gpu, request gpu wants 9: devices 8, class example-gpu 8
`, reasons)

	out, _, err = run(t, in.String(), append(files("templates.yaml", "classes.yaml"), "-f", "-", "--nodes", "example-h100=2", "--how-many")...)
	require.ErrorIs(t, err, cli.ErrNegative)
	require.Contains(t, out, "Then, for one more like Pod default/train-0 (10 Pods like this):\n")
	require.Equal(t, 3, strings.Count(out, "Then, "))
}

package schedule

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
)

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
  no node has as many devices: node example-h100-0 has the most, 8, of 16 devices of class example-gpu on 2 nodes; request gpu wants 9 on one node

Pod default/lost-0 fits on no node (10 Pods like this):
  resourceclaim "lost-0-gpu", request gpu: deviceclass "lost" not found: give its file with -f

Pod other/train-0 fits on no node:
  no node has as many devices: node example-h100-0 has the most, 8, of 16 devices of class example-gpu on 2 nodes; request gpu wants 9 on one node
`, reasons)

	out, _, err = run(t, in.String(), append(files("templates.yaml", "classes.yaml"), "-f", "-", "--nodes", "example-h100=2", "--how-many")...)
	require.ErrorIs(t, err, cli.ErrNegative)
	require.Contains(t, out, "Then, for one more like Pod default/train-0 (10 Pods like this):\n")
	require.Equal(t, 3, strings.Count(out, "Then, "))
}

// pod is a Pod with a claim of its own, by requests in YAML.
func pod(name, requests string) string {
	return fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: %[1]s}
spec: {spec: {devices: %[2]s}}
---
apiVersion: v1
kind: Pod
metadata: {name: %[1]s}
spec:
  containers: [{name: c, image: i}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: %[1]s}]
---
`, name, requests)
}

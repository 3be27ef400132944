package schedule

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/pkg/dractl/cli"
)

// TestWorkloads: what makes Pods is placed as its Pods, and counted in one row.
func TestWorkloads(t *testing.T) {
	t.Parallel()
	const template = `{spec: {containers: [{name: c, image: i}], resourceClaims: [{name: gpu, resourceClaimTemplateName: four}]}}`
	for kind, test := range map[string]struct {
		spec string
		pods int
	}{
		"apps/v1 Deployment":  {"{replicas: 3, selector: {}, template: %s}", 3},
		"apps/v1 ReplicaSet":  {"{replicas: 2, selector: {}, template: %s}", 2},
		"apps/v1 StatefulSet": {"{selector: {}, template: %s}", 1},
		"batch/v1 Job":        {"{parallelism: 5, completions: 3, template: %s}", 3},
		"batch/v1 CronJob":    {"{schedule: '@daily', jobTemplate: {spec: {parallelism: 2, template: %s}}}", 2},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			var version, name string
			_, err := fmt.Sscan(kind, &version, &name)
			require.NoError(t, err)
			in := fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: work}\nspec: ", version, name) + fmt.Sprintf(test.spec, template) + `
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: four}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: example-gpu, count: 4}}]}}}
`
			out, errOut, err := run(t, in, append(files("templates.yaml", "classes.yaml"), "-f", "-", "--nodes", "example-h100=1", "--how-many")...)
			require.Empty(t, errOut)
			require.Contains(t, out, fmt.Sprintf("%s/work   %d      2\n", name, test.pods))
			if test.pods > 2 {
				require.ErrorIs(t, err, cli.ErrNegative)
			} else {
				require.NoError(t, err)
			}
		})
	}
}

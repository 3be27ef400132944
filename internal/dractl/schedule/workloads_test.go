package schedule

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
)

const (
	fourGPUs     = `{spec: {containers: [{name: c, image: i}], resourceClaims: [{name: gpu, resourceClaimTemplateName: four}]}}`
	fourTemplate = `
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: four}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: example-gpu, count: 4}}]}}}
`
)

// TestWorkloads: what makes Pods is placed as its Pods, and counted in one row.
func TestWorkloads(t *testing.T) {
	t.Parallel()
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
			in := fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: work}\nspec: ", version, name) + fmt.Sprintf(test.spec, fourGPUs) + fourTemplate
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

// TestSavedPodsOfWorkloads: what is saved from a cluster with the Pods that it has made is counted once.
func TestSavedPodsOfWorkloads(t *testing.T) {
	t.Parallel()
	workload := func(version, kind, name, owner, spec string) string {
		return fmt.Sprintf("---\napiVersion: %s\nkind: %s\nmetadata: {name: %s, ownerReferences: [%s]}\nspec: {template: %s, %s}\n", version, kind, name, owner, fourGPUs, spec)
	}
	pod := func(name, owner, status string) string {
		return fmt.Sprintf("---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s, labels: {pod-template-hash: abc}, ownerReferences: [%s]}\nspec: {containers: [{name: c, image: i}], "+
			"resourceClaims: [{name: gpu, resourceClaimTemplateName: four}]}\nstatus: {%s}\n", name, owner, status)
	}
	controlled := func(version, kind, name string) string {
		return fmt.Sprintf("{apiVersion: %s, kind: %s, name: %s, uid: u, controller: true}", version, kind, name)
	}
	ofDeployment, ofReplicaSet, ofJob := controlled("apps/v1", "Deployment", "web"), controlled("apps/v1", "ReplicaSet", "web-abc"), controlled("batch/v1", "Job", "web")
	cronJob := "---\napiVersion: batch/v1\nkind: CronJob\nmetadata: {name: web}\nspec: {schedule: '@daily', jobTemplate: {spec: {template: " + fourGPUs + "}}}\n"
	for name, test := range map[string]struct {
		in, row string
	}{
		"Deployment and its Pods": {
			workload("apps/v1", "Deployment", "web", "", "replicas: 3") + pod("web-abc-x", ofReplicaSet, "") + pod("web-abc-y", ofReplicaSet, ""), "Deployment/web   3 ",
		},
		"Deployment, its ReplicaSet and its Pods": {
			workload("apps/v1", "ReplicaSet", "web-abc", ofDeployment, "replicas: 2") + pod("web-abc-x", ofReplicaSet, "") + workload("apps/v1", "Deployment", "web", "", "replicas: 2"),
			"Deployment/web   2 ",
		},
		"ReplicaSet without its Deployment": {
			workload("apps/v1", "ReplicaSet", "web-abc", ofDeployment, "replicas: 2") + pod("web-abc-x", ofReplicaSet, ""), "ReplicaSet/web-abc   2 ",
		},
		"more Pods than replicas": {
			workload("apps/v1", "Deployment", "web", "", "replicas: 1") + pod("web-abc-x", ofReplicaSet, "") + pod("web-abc-y", ofReplicaSet, ""), "Deployment/web   2 ",
		},
		"StatefulSet with names that are taken": {
			workload("apps/v1", "StatefulSet", "web", "", "replicas: 3") + pod("web-0", controlled("apps/v1", "StatefulSet", "web"), ""), "StatefulSet/web   3 ",
		},
		"Job of which a Pod has ended": {
			workload("batch/v1", "Job", "web", "", "parallelism: 2, completions: 3") + "status: {succeeded: 2}\n" + pod("web-x", ofJob, "phase: Succeeded") + pod("web-y", ofJob, ""), "Job/web   1 ",
		},
		"Job of another project's kind": {
			workload("batch/v1", "Job", "web", controlled("jobset.x-k8s.io/v1alpha2", "JobSet", "set"), "") + pod("web-x", controlled("batch.volcano.sh/v1alpha1", "Job", "web"), ""), "Job/web   2 ",
		},
		"CronJob, and a Pod of its Job": {
			cronJob + pod("web-2930-x", controlled("batch/v1", "Job", "web-2930"), ""), "CronJob/web   1 ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, errOut, err := run(t, test.in+fourTemplate, append(files("templates.yaml", "classes.yaml"), "-f", "-", "--nodes", "example-h100=4", "--how-many")...)
			require.NoError(t, err, out)
			require.Empty(t, errOut)
			require.Regexp(t, `(?m)^default +`+strings.ReplaceAll(test.row, "   ", " +"), out)
		})
	}

	in := cronJob + workload("batch/v1", "Job", "done", "", "completions: 1") + "status: {conditions: [{type: Complete, status: 'True'}]}\n"
	out, _, err := run(t, in+fourTemplate, append(files("templates.yaml", "classes.yaml"), "-f", "-", "--nodes", "example-h100=1")...)
	require.NoError(t, err)
	require.NotContains(t, out, "done", "a Job that has ended makes no Pods")
}

package fleet

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/documents"
	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
)

const chart = `---
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: chart}
spec:
  driver: '{{ .DriverPod.env.DRIVER }}'
  driverPod: {namespace: drivers, selector: {matchLabels: {app: plugin}}}
  devices: [{name: gpu}]
`

const pod = "{containers: [{name: c, image: i, env: [{name: DRIVER, value: d}]}], %s}"

func inFile(kind, more, spec string) string {
	spec = strings.ReplaceAll(pod, "%s", spec)
	if kind == "DaemonSet" {
		return "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: x" + more + "}\nspec: {selector: {matchLabels: {app: plugin}}, template: {metadata: {labels: {app: plugin}}, spec: " + spec + "}}\n"
	}
	return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: x, labels: {app: plugin}" + more + "}\nspec: " + spec + "\n"
}

// TestDriverPodsInFiles: which drivers are on the nodes a and b.
func TestDriverPodsInFiles(t *testing.T) {
	t.Parallel()
	const nodes = `
apiVersion: v1
kind: Node
metadata: {name: a, labels: {zone: z}, annotations: {kwok.x-k8s.io/node: fake}}
---
apiVersion: v1
kind: Node
metadata: {name: b, annotations: {kwok.x-k8s.io/node: fake}}
`
	for name, test := range map[string]struct {
		file string
		want []string
	}{
		"none":                {"", nil},
		"a Pod on a node":     {inFile("Pod", ", namespace: drivers", "nodeName: b"), []string{"b"}},
		"a Pod of any node":   {inFile("Pod", "", ""), []string{"a", "b"}},
		"a DaemonSet":         {inFile("DaemonSet", "", ""), []string{"a", "b"}},
		"a node selector":     {inFile("DaemonSet", "", "nodeSelector: {zone: z}"), []string{"a"}},
		"another namespace":   {inFile("DaemonSet", ", namespace: other", ""), nil},
		"something else, too": {inFile("DaemonSet", "", "") + "---\napiVersion: v1\nkind: Service\nmetadata: {name: x}\n", []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read, pods, err := FromDocuments(documents.Split("nodes.yaml", []byte(nodes+test.file)))
			require.NoError(t, err)
			set := configtest.SetOf(t, chart)
			var on []string
			for _, node := range read {
				bound := devices.Bind(set.Templates, node, pods.On(node).BindTemplate)
				require.Empty(t, bound.Failed)
				if len(bound.Templates) == 1 && bound.Templates[0].Driver == "d" && bound.Templates[0].Pod.Ready {
					on = append(on, node.Name)
				}
			}
			require.Equal(t, test.want, on)

			var told strings.Builder
			TellWithoutPods(cli.Streams{ErrOut: &told}, set, read, pods.On)
			require.Equal(t, len(test.want) == 0, strings.Contains(told.String(), "template chart has no driver Pod"))
		})
	}
}

func TestDriverPodOfAnotherLabel(t *testing.T) {
	t.Parallel()
	set := configtest.SetOf(t, chart)
	other := DriverPods{{ObjectMeta: metav1.ObjectMeta{Name: "x", Labels: map[string]string{"app": "other"}}}}
	on, known := other.On(&corev1.Node{})(set.Templates[0])
	require.True(t, known)
	require.Empty(t, on)
}

package dractl

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/internal/dractl/documents"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// more are templates of what no profile has.
const more = `
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: tainted}
spec:
  driver: tainted.example.com
  devices:
  - {name: gpu, count: 3, taints: [{key: k, effect: NoSchedule}]}
  - {name: slow, attributes: {roots: [a, b]}, bindsToNode: true}
---
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: fabric}
spec:
  driver: fabric.example.com
  sharedWith: {allNodes: true}
  devices: [{name: port, count: 200}]
`

// TestRender: what is rendered for the cluster's nodes is what the sidecar has
// published, and so is what is rendered without the cluster for its release. A
// diff tells of nothing then, and of the right slices when a template changes. A
// copy of the nodes has the same devices.
func TestRender(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.fleet()
	s.sidecar()
	const configMap = " --config-map kube-system/kwok-dra"
	s.must("kubectl wait --for=condition=Ready node --all --timeout=5m")
	s.eventually("kwok-dractl diff" + configMap)

	live := s.live()
	rendered := slicesIn(t, s.must("kwok-dractl render --from-cluster"+configMap))
	require.Equal(t, textsOf(t, live), textsOf(t, rendered))
	s.must("kubectl get nodes -o yaml > nodes.yaml && for file in templates/*.yaml; do echo ---; cat $file; done > templates.yaml")
	offline := slicesIn(t, s.must(fmt.Sprintf("kwok-dractl render -f templates.yaml -f nodes.yaml --server-version 1.%d", harness.KubernetesMinor())))
	require.Equal(t, textsOf(t, live), textsOf(t, offline))

	s.differences(live)
	s.copies(live)
}

// fleet makes a ConfigMap with the whole catalogue and more, and nodes of all of
// it.
func (s *shell) fleet() {
	s.Helper()
	require.NoError(s, os.Mkdir(filepath.Join(s.dir, "templates"), 0o755))
	s.write("templates/more.yaml", more)
	var nodes strings.Builder
	for name := range strings.FieldsSeq(s.must("kwok-dractl generate --list-profiles -o name")) {
		var templates strings.Builder
		for _, document := range documents.Split(name, []byte(s.must(fmt.Sprintf("kwok-dractl generate --profile %s --nodes 2", name)))) {
			switch text := "---\n" + string(document.Data); {
			case strings.Contains(text, "\nkind: Node\n"):
				nodes.WriteString(text)
			case strings.Contains(text, "\nkind: ResourcePoolTemplate\n"):
				templates.WriteString(text)
			}
		}
		s.write("templates/"+name+".yaml", templates.String())
	}
	s.write("nodes.yaml", nodes.String())
	s.must("kubectl apply --server-side -f nodes.yaml")
	s.must("kubectl create configmap -n kube-system kwok-dra --from-file templates")
}

func (s *shell) write(name, text string) {
	s.Helper()
	require.NoError(s, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o644))
}

func (s *shell) live() []resourcev1.ResourceSlice {
	s.Helper()
	list, err := s.client.ResourceV1().ResourceSlices().List(s.Context(), metav1.ListOptions{})
	require.NoError(s, err)
	require.NotEmpty(s, list.Items)
	return list.Items
}

func slicesIn(t *testing.T, text string) []resourcev1.ResourceSlice {
	t.Helper()
	objects, err := documents.Objects(documents.Split("rendered", []byte(text)))
	require.NoError(t, err)
	made := make([]resourcev1.ResourceSlice, len(objects))
	for i := range objects {
		require.NoError(t, objects[i].Into(&made[i]))
	}
	return made
}

// textsOf are all that the sidecar writes of slices, by name. When a taint was
// added is the API server's.
func textsOf(t *testing.T, all []resourcev1.ResourceSlice) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, slice := range all {
		kept := &resourcev1.ResourceSlice{Spec: *slice.Spec.DeepCopy()}
		kept.Labels, kept.OwnerReferences = slice.Labels, slice.OwnerReferences
		for i := range kept.Spec.Devices {
			for j := range kept.Spec.Devices[i].Taints {
				kept.Spec.Devices[i].Taints[j].TimeAdded = nil
			}
		}
		text, err := yaml.Marshal(kept)
		require.NoError(t, err)
		texts[slice.Name] = string(text)
	}
	return texts
}

// differences changes a template and has diff tell of it. Nothing is written.
func (s *shell) differences(live []resourcev1.ResourceSlice) {
	s.Helper()
	s.must("sed 's/80GB HBM3/96GB HBM3/' templates.yaml > changed.yaml")
	r := s.run("kwok-dractl diff -f changed.yaml")
	require.Equal(s, 1, r.code, r)
	require.Contains(s, r.out, "-        string: NVIDIA H100 80GB HBM3\n+        string: NVIDIA H100 96GB HBM3\n")
	s.must("kwok-dractl diff -f templates/nvidia-l4.yaml") // what others make stays
	table := s.run("kwok-dractl diff -f templates/nvidia-l4.yaml --prune -o table")
	require.Equal(s, 1, table.code)
	require.Equal(s, len(live)-2, strings.Count(table.out, "\ndelete "), "all but the two nodes of the profile")
	names := s.run("kwok-dractl diff -f templates/nvidia-l4.yaml --prune -o name")
	require.Equal(s, len(live)-2, strings.Count(names.out, "resourceslice.resource.k8s.io/"))
	for i, slice := range s.live() {
		require.Equal(s, live[i].ResourceVersion, slice.ResourceVersion, slice.Name)
	}
}

// copies copies the fleet, and renders the copy.
func (s *shell) copies(live []resourcev1.ResourceSlice) {
	s.Helper()
	r := s.run("kwok-dractl generate --from-cluster > copy.yaml")
	require.Zero(s, r.code, r)
	require.Empty(s, r.errOut)
	made := slicesIn(s.T, s.must("kwok-dractl render -f copy.yaml --server-version 1."+fmt.Sprint(harness.KubernetesMinor())))
	require.Equal(s, specsOf(s.T, live), specsOf(s.T, made))
}

// specsOf are the slices by what they say, without the names of the nodes' uids.
func specsOf(t *testing.T, all []resourcev1.ResourceSlice) map[string]string {
	t.Helper()
	specs := map[string]string{}
	for _, slice := range all {
		index, _, _ := strings.Cut(slice.Name, "-")
		key := strings.Join([]string{slice.Spec.Driver, slice.Spec.Pool.Name, index}, " ")
		slice.ObjectMeta = metav1.ObjectMeta{Name: key}
		specs[key] = textsOf(t, []resourcev1.ResourceSlice{slice})[key]
	}
	require.Len(t, specs, len(all))
	return specs
}

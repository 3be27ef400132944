package overlay

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

const version = "v9.8.7-RC.1"

// TestManifest has one "kubectl apply" install all that the overlay has into an
// empty cluster.
func TestManifest(t *testing.T) {
	t.Parallel()
	checkout, err := Copy(t.Context(), sidecar.Root(), t.TempDir(), "kwok")
	require.NoError(t, err)
	overlay, err := checkout.Render(Variant{Overlay: "kwok", Tag: version})
	require.NoError(t, err)
	text, err := checkout.Manifest(version)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "install.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	c := cluster.ForTest(t, cluster.Options{Disable: []string{cluster.Kwok, cluster.ControllerManager, cluster.Scheduler}})

	kubectl(t, c, "apply", "--filename", file)
	runJob(t, c)
	_, stages := SplitStages(overlay)
	names := []string{}
	for _, stage := range stages {
		names = append(names, "stage.kwok.x-k8s.io/"+stage.Name())
	}
	require.ElementsMatch(t, names, strings.Fields(kubectl(t, c, "get", "stages.kwok.x-k8s.io", "--output=name")))
	kubectl(t, c, "apply", "--filename", file) // as an upgrade does
}

// runJob does what a kubelet would do for the Job, with its ServiceAccount.
func runJob(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	var job struct {
		Spec struct {
			Template struct {
				Spec struct {
					ServiceAccountName string
					Containers         []struct {
						Image        string
						Args         []string
						VolumeMounts []struct{ Name, MountPath string }
					}
					Volumes []struct {
						Name      string
						ConfigMap struct{ Name string }
					}
				}
			}
		}
	}
	get(t, c, &job, "job", StagesName+"-v9.8.7-rc.1")
	pod := job.Spec.Template.Spec
	require.Len(t, pod.Containers, 1)
	container := pod.Containers[0]
	require.Regexp(t, `^registry\.k8s\.io/kubectl:v1\.\d+\.\d+$`, container.Image)
	require.Equal(t, pod.Volumes[0].Name, container.VolumeMounts[0].Name)
	var files struct{ Data map[string]string }
	get(t, c, &files, "configmap", pod.Volumes[0].ConfigMap.Name)
	dir := t.TempDir()
	for name, content := range files.Data {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	arguments := []string{"--as=system:serviceaccount:kube-system:" + pod.ServiceAccountName}
	for _, argument := range container.Args {
		arguments = append(arguments, strings.ReplaceAll(argument, container.VolumeMounts[0].MountPath, dir))
	}
	require.NoError(t, c.AwaitDefinitions(t.Context()))
	kubectl(t, c, arguments...)
}

func get(t *testing.T, c *cluster.Cluster, into any, kind, name string) {
	t.Helper()
	text := kubectl(t, c, "get", "--namespace=kube-system", "--output=json", kind, name)
	require.NoError(t, json.Unmarshal([]byte(text), into))
}

func kubectl(t *testing.T, c *cluster.Cluster, arguments ...string) string {
	t.Helper()
	output, err := c.Kubectl(t.Context(), arguments...)
	require.NoError(t, err, "kubectl %v", arguments)
	return output
}

// TestManifestHasTheOverlay has install.yaml differ from the overlay in nothing but
// the Job and what it needs.
func TestManifestHasTheOverlay(t *testing.T) {
	t.Parallel()
	checkout, err := Copy(t.Context(), sidecar.Root(), t.TempDir(), "kwok")
	require.NoError(t, err)
	objects, err := checkout.Render(Variant{Overlay: "kwok", Tag: version})
	require.NoError(t, err)
	text, err := YAML(objects)
	require.NoError(t, err)
	want := documents(t, text)
	text, err = checkout.Manifest(version)
	require.NoError(t, err)
	got := documents(t, text)
	stages := got["v1/ConfigMap/kube-system/"+StagesName]["data"].(map[string]any)["stages.yaml"].(string)
	for id, stage := range documents(t, []byte(stages)) {
		require.Equal(t, want[id], stage)
		delete(want, id)
	}
	for id, object := range want {
		require.Equal(t, object, got[id])
		delete(got, id)
	}
	require.ElementsMatch(t, []string{
		"v1/ConfigMap/kube-system/" + StagesName, "v1/ServiceAccount/kube-system/" + StagesName,
		"rbac.authorization.k8s.io/v1/ClusterRole//" + StagesName, "rbac.authorization.k8s.io/v1/ClusterRoleBinding//" + StagesName,
		"batch/v1/Job/kube-system/" + StagesName + "-v9.8.7-rc.1",
	}, slices.Collect(maps.Keys(got)))
}

// documents are objects by their IDs, as kubectl reads them.
func documents(t *testing.T, text []byte) map[string]Object {
	t.Helper()
	all := map[string]Object{}
	for document := range strings.SplitSeq("\n"+string(text), "\n---\n") {
		var object Object
		require.NoError(t, yaml.Unmarshal([]byte(document), &object))
		if len(object) > 0 {
			all[object.ID()] = object
		}
	}
	return all
}

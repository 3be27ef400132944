package helm

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	v2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
	"github.com/kwok-dra/kwok-dra/test/tools/release/chart"
	"github.com/kwok-dra/kwok-dra/test/tools/release/overlay"
)

const version = "v9.8.7-test"

// rendering is values of the chart, and the variant of the overlays that they stand
// for.
type rendering struct {
	values  string
	variant overlay.Variant
}

// TestChart has the chart render what the overlays render, object by object, with
// all combinations of values that are overlays or components.
func TestChart(t *testing.T) {
	t.Parallel()
	checkout, loaded := load(t)
	for _, stages := range []string{"fast", "general"} {
		for _, replicas := range []int{1, 3} {
			for _, components := range [][]string{nil, {"secure-serving"}, {"container-view"}, {"secure-serving", "container-view"}} {
				values := fmt.Sprintf("{stages: %s, replicas: %d, secureServing: %t, containerView: %t}", stages, replicas,
					slices.Contains(components, "secure-serving"), slices.Contains(components, "container-view"))
				variant := overlay.Variant{Overlay: map[string]string{"fast": "kwok", "general": "kwok-general"}[stages], Tag: version}
				if replicas > 1 {
					variant.Components = append(variant.Components, "replicas")
				}
				variant.Components = append(variant.Components, components...)
				t.Run(values, func(t *testing.T) {
					t.Parallel()
					requireSame(t, checkout, loaded, rendering{values, variant})
				})
			}
		}
	}
}

func requireSame(t *testing.T, checkout *overlay.Checkout, loaded *v2.Chart, r rendering) {
	t.Helper()
	objects, err := checkout.Render(r.variant)
	require.NoError(t, err)
	want := byID(t, objects)
	got := byID(t, render(t, loaded, r.values, "kube-system"))
	for id, object := range want {
		require.Equal(t, object, got[id], "%s", id)
		delete(got, id)
	}
	require.Empty(t, got, "objects that the overlay does not have")
}

// TestNamespace has a release in another namespace differ in nothing else.
func TestNamespace(t *testing.T) {
	t.Parallel()
	_, loaded := load(t)
	usual, err := json.Marshal(byID(t, render(t, loaded, "{}", "kube-system")))
	require.NoError(t, err)
	other, err := json.Marshal(byID(t, render(t, loaded, "{}", "elsewhere")))
	require.NoError(t, err)
	require.NotContains(t, string(other), "kube-system")
	require.JSONEq(t, strings.ReplaceAll(string(usual), "kube-system", "elsewhere"), string(other))
}

// TestValues has what users choose besides reach the containers.
func TestValues(t *testing.T) {
	t.Parallel()
	_, loaded := load(t)
	objects := byID(t, render(t, loaded, `
image: {repository: registry.example.com/kwok-dra, tag: mine, pullPolicy: Always}
kwok: {image: {repository: registry.example.com/kwok, tag: v0.8.1}}
env: [{name: GOMEMLIMIT, value: 1GiB}]
resources: {limits: {memory: 4Gi}, requests: null}
extraArgs: [-v=4, '--config={"a": 1}']
`, "kube-system"))
	text, err := json.Marshal(objects["apps/v1/Deployment/kube-system/kwok-controller"])
	require.NoError(t, err)
	var deployment struct {
		Spec struct {
			Template struct {
				Spec struct {
					Containers []struct {
						Image, ImagePullPolicy string
						Args                   []string
						Env                    []map[string]any
						Resources              map[string]map[string]string
					}
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal(text, &deployment))
	containers := deployment.Spec.Template.Spec.Containers
	require.Equal(t, "registry.example.com/kwok:v0.8.1", containers[0].Image)
	require.Equal(t, "registry.example.com/kwok-dra:mine", containers[1].Image)
	require.Equal(t, "Always", containers[1].ImagePullPolicy)
	require.Equal(t, []string{"--config-map=kube-system/kwok-dra", "--enable-crds", "-v=4", `--config={"a": 1}`}, containers[1].Args)
	require.Equal(t, []map[string]any{{"name": "GOMEMLIMIT", "value": "1GiB"}}, containers[1].Env)
	require.Equal(t, "4Gi", containers[1].Resources["limits"]["memory"])
	require.NotContains(t, containers[1].Resources, "requests")
}

// TestMistakes has the chart refuse values that it would not use.
func TestMistakes(t *testing.T) {
	t.Parallel()
	_, loaded := load(t)
	for values, problem := range map[string]string{
		"stage: general":        "'stage' not allowed",
		"stages: chaos":         "'fast', 'general'",
		"replicas: 0":           "minimum",
		"image: {tags: latest}": "'tags' not allowed",
	} {
		_, err := renderValues(t, loaded, values, "kube-system")
		require.ErrorContains(t, err, problem, values)
	}
}

// load makes the chart, writes it as a release does, and has Helm read it.
func load(t *testing.T) (*overlay.Checkout, *v2.Chart) {
	t.Helper()
	checkout, err := overlay.Copy(t.Context(), sidecar.Root(), t.TempDir(), "kwok", "kwok-general")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), chart.File(version))
	require.NoError(t, chart.Write(checkout, file, version, time.Unix(0, 0)))
	loaded, err := loader.Load(file)
	require.NoError(t, err)
	require.NoError(t, loaded.Validate())
	require.Equal(t, version, "v"+loaded.Metadata.Version)
	return checkout, loaded
}

// render is what Helm applies.
func render(t *testing.T, loaded *v2.Chart, values, namespace string) []overlay.Object {
	t.Helper()
	files, err := renderValues(t, loaded, values, namespace)
	require.NoError(t, err)
	var objects []overlay.Object
	for _, crd := range loaded.CRDObjects() {
		objects = append(objects, documents(t, string(crd.File.Data))...)
	}
	for name, text := range files {
		if filepath.Base(name) == "NOTES.txt" {
			require.Contains(t, text, "kubectl -n "+namespace+" rollout status deployment kwok-controller")
			continue
		}
		objects = append(objects, documents(t, text)...)
	}
	return objects
}

func renderValues(t *testing.T, loaded *v2.Chart, text, namespace string) (map[string]string, error) {
	t.Helper()
	values, err := common.ReadValues([]byte(text))
	require.NoError(t, err)
	release := common.ReleaseOptions{Name: "kwok-dra", Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(loaded, values, release, nil)
	if err != nil {
		return nil, err
	}
	return engine.Render(loaded, all)
}

func documents(t *testing.T, text string) []overlay.Object {
	t.Helper()
	var objects []overlay.Object
	for document := range strings.SplitSeq("\n"+text, "\n---\n") {
		var object overlay.Object
		require.NoError(t, yaml.Unmarshal([]byte(document), &object), document)
		if len(object) > 0 {
			objects = append(objects, object)
		}
	}
	return objects
}

// byID are the objects as the API server would read them.
func byID(t *testing.T, objects []overlay.Object) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, object := range objects {
		text, err := json.Marshal(object)
		require.NoError(t, err)
		var plain any
		require.NoError(t, json.Unmarshal(text, &plain))
		require.NotContains(t, all, object.ID())
		all[object.ID()] = plain
	}
	return all
}

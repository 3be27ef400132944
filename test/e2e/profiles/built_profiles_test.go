package profiles

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// builtProfiles is what a kustomization of some profiles yields.
type builtProfiles struct {
	classes   []resourcev1.DeviceClass
	templates []v1alpha1.ResourcePoolTemplate
	// set is what the sidecar makes of the templates.
	set *config.Set
}

// buildProfiles builds the directory of a profile, or an overlay of several, and has the sidecar's own
// checks pass.
func buildProfiles(t *testing.T, names ...string) *builtProfiles {
	t.Helper()
	directory := profilePath(names[0])
	if len(names) > 1 {
		directory = overlay(t, names...)
	}
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), directory)
	require.NoError(t, err)
	text, err := objects.AsYaml()
	require.NoError(t, err)
	built := &builtProfiles{}
	var templates []*unstructured.Unstructured
	for _, object := range documents(t, text) {
		switch object.GetKind() {
		case v1alpha1.ResourcePoolTemplateKind:
			var template v1alpha1.ResourcePoolTemplate
			convert(t, object, &template)
			built.templates = append(built.templates, template)
			templates = append(templates, &object)
		case "DeviceClass":
			var class resourcev1.DeviceClass
			convert(t, object, &class)
			built.classes = append(built.classes, class)
		default:
			t.Fatalf("profiles %v have a %s", names, object.GetKind())
		}
	}
	require.NotEmpty(t, built.templates)
	set, refused := config.Snapshot(nil, templates)
	require.Empty(t, refused)
	built.set = set
	return built
}

// overlay writes a kustomization of profiles, as a user does, and returns its directory.
func overlay(t *testing.T, profiles ...string) string {
	t.Helper()
	directory, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	text := "components:\n"
	for _, name := range profiles {
		relative, err := filepath.Rel(directory, profilePath(name))
		require.NoError(t, err)
		text += "- " + relative + "\n"
	}
	require.NoError(t, os.WriteFile(filepath.Join(directory, "kustomization.yaml"), []byte(text), 0o600))
	return directory
}

// ofChart reports whether nodes have the devices where a Pod of a chart runs.
func (b *builtProfiles) ofChart() bool {
	return slices.ContainsFunc(b.templates, func(template v1alpha1.ResourcePoolTemplate) bool { return template.Spec.DriverPod != nil })
}

// deviceCounts are how many devices a node has of each driver, by the templates.
func (b *builtProfiles) deviceCounts() map[string]int {
	counts := map[string]int{}
	for _, template := range b.templates {
		for _, group := range template.Spec.Devices {
			each := 1
			for _, partition := range group.Partitions {
				each += max(1, len(partition.Placements), countOr(partition.Count, 1))
			}
			counts[template.Spec.Driver] += each * countOr(group.Count, 1)
		}
	}
	return counts
}

func countOr(count *int32, otherwise int) int {
	if count == nil {
		return otherwise
	}
	return int(*count)
}

// reports reports whether claims show anything of a driver's prepared devices.
func (b *builtProfiles) reports(driver string) bool {
	return slices.ContainsFunc(b.templates, func(template v1alpha1.ResourcePoolTemplate) bool {
		status := template.Spec.ClaimStatus
		silent := status != nil && status.Mode == v1alpha1.ClaimStatusNone && status.Data == nil && status.NetworkData == nil
		return template.Spec.Driver == driver && !silent
	})
}

// shown counts the devices of a claim of which the drivers of the profile report
// anything.
func (b *builtProfiles) shown(claim *resourcev1.ResourceClaim) int {
	count := 0
	for _, result := range claim.Status.Allocation.Devices.Results {
		if b.reports(result.Driver) {
			count++
		}
	}
	return count
}

// requireNoClash has every instance type make pools on a node, with all profiles
// that select it.
func requireNoClash(t *testing.T, built *builtProfiles) {
	t.Helper()
	types := map[string]bool{}
	for _, template := range built.templates {
		for _, value := range instanceTypes(template.Spec.NodeSelector) {
			types[value] = true
		}
	}
	for name := range types {
		require.NotEmpty(t, built.poolsOf(t, map[string]string{corev1.LabelInstanceTypeStable: name}), "instance type %s", name)
	}
}

// instanceTypes are those that a selector names.
func instanceTypes(selector *corev1.NodeSelector) []string {
	var types []string
	if selector == nil {
		return nil
	}
	for _, term := range selector.NodeSelectorTerms {
		for _, expression := range term.MatchExpressions {
			if expression.Key == corev1.LabelInstanceTypeStable {
				types = append(types, expression.Values...)
			}
		}
	}
	return types
}

// poolsOf are the pools of a node with those labels.
func (b *builtProfiles) poolsOf(t *testing.T, labels map[string]string) []devices.Pool {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", UID: "uid", Labels: labels}}
	var all []devices.Pool
	for _, templates := range devices.SelectForNode(devices.Bind(b.set.Templates, node, nil).Templates, node).ByDriver {
		pools, refusals, err := devices.PoolsForNode(templates, lifecycle.NewObject(node), nil)
		require.NoError(t, err, "node with the labels %v", labels)
		require.Empty(t, refusals)
		all = append(all, pools...)
	}
	return all
}

// sample is the sample.yaml of a profile.
type sample struct {
	objects []unstructured.Unstructured
	pods    []*corev1.Pod
}

// readSample reads a sample. What has no namespace gets one of the profile's
// name.
func readSample(t *testing.T, profile string) *sample {
	t.Helper()
	text, err := os.ReadFile(profilePath(profile, "sample.yaml"))
	require.NoError(t, err)
	read := &sample{objects: documents(t, text)}
	for _, object := range read.objects {
		if object.GetNamespace() == "" && object.GetKind() != "Namespace" && object.GetKind() != "DeviceClass" {
			object.SetNamespace(profile)
		}
		if object.GetKind() == "Pod" {
			var pod corev1.Pod
			convert(t, object, &pod)
			require.Equal(t, profile, pod.Spec.NodeSelector["dra.kwok.x-k8s.io/profile"], "Pod %s keeps to nodes of the profile", pod.Name)
			read.pods = append(read.pods, &pod)
		}
	}
	require.NotEmpty(t, read.pods)
	return read
}

func (s *sample) yaml(t *testing.T) string {
	t.Helper()
	var all bytes.Buffer
	for _, object := range s.objects {
		text, err := yaml.Marshal(object.Object)
		require.NoError(t, err)
		all.WriteString("---\n")
		all.Write(text)
	}
	return all.String()
}

// documents reads the objects of a file.
func documents(t *testing.T, text []byte) []unstructured.Unstructured {
	t.Helper()
	var objects []unstructured.Unstructured
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		require.NoError(t, err)
		var object map[string]any
		require.NoError(t, yaml.Unmarshal(document, &object))
		if object != nil {
			objects = append(objects, unstructured.Unstructured{Object: object})
		}
	}
}

// convert makes a typed object, and fails on fields that the type does not have.
func convert(t *testing.T, object unstructured.Unstructured, into any) {
	t.Helper()
	text, err := yaml.Marshal(object.Object)
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(text, into))
}

package target

import (
	"cmp"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// live is an object of the cluster.
func live(kind, name string, owned bool) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"kind": kind}}
	object.SetName(name)
	if owned {
		object.SetLabels(map[string]string{v1alpha1.ScaleLabel: ""})
	}
	return object
}

// nodes are those of a target in the cluster.
func nodes(fleet, uses string, names ...string) []metav1.PartialObjectMetadata {
	var all []metav1.PartialObjectMetadata
	for _, name := range names {
		node := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{v1alpha1.ScaleUsesAnnotation: uses}}}
		if fleet != "" {
			node.Labels = map[string]string{v1alpha1.ScaleLabel: fleet}
		}
		all = append(all, node)
	}
	return all
}

// TestNew: what is made and removed for nvidia-t4, whose class nvidia-l4 shares.
func TestNew(t *testing.T) {
	t.Parallel()
	const t4, l4 = "DeviceClass/gpu.nvidia.com,ResourcePoolTemplate/nvidia-t4", "DeviceClass/gpu.nvidia.com,ResourcePoolTemplate/nvidia-l4"
	mine := nodes("nvidia-t4", t4, "nvidia-t4-0", "nvidia-t4-1", "nvidia-t4-10")
	class, template := live(classKind, "gpu.nvidia.com", true), live(v1alpha1.ResourcePoolTemplateKind, "nvidia-t4", true)
	alone := live(v1alpha1.ResourcePoolTemplateKind, "nvidia-l4", true)
	for _, made := range []*unstructured.Unstructured{template, alone} {
		made.SetAnnotations(map[string]string{v1alpha1.ScaleUsesAnnotation: "DeviceClass/gpu.nvidia.com"})
	}
	inForce := append(templatesOf(t, "nvidia-t4"), templatesOf(t, "rdma-nic")...)
	edited := *inForce[0]
	edited.ResourcePoolTemplateSpec = edited.DeepCopy()
	edited.Driver = "mine.example.com"
	fake := nodes("", "", "mine")
	fake[0].Labels = map[string]string{v1alpha1.ProfileLabel: "nvidia-t4"}
	fake[0].Annotations = map[string]string{lifecycle.NodeAnnotation: lifecycle.FakeValue}
	typed, mig := nodes("", "", "h100-0"), live(v1alpha1.ResourcePoolTemplateKind, "nvidia-h100-mig", true)
	typed[0].Labels, typed[0].Annotations = map[string]string{corev1.LabelInstanceTypeStable: "p5.48xlarge"}, fake[0].Annotations
	for name, test := range map[string]struct {
		of                 string
		want               int
		seen               Observed
		made, removed      []string
		makes, removesLast []string
		foreign, unowned   []string
		different          string
		kept               []string
	}{
		"from nothing":                {want: 2, made: []string{"nvidia-t4-0", "nvidia-t4-1"}, makes: []string{"DeviceClass/gpu.nvidia.com", "ResourcePoolTemplate/nvidia-t4"}},
		"grow into gaps":              {want: 5, seen: Observed{Nodes: mine}, made: []string{"nvidia-t4-2", "nvidia-t4-3"}},
		"enough":                      {want: 3, seen: Observed{Nodes: mine}},
		"shrink, highest first":       {want: 1, seen: Observed{Nodes: mine}, removed: []string{"nvidia-t4-10", "nvidia-t4-1"}},
		"shrink, without Pods first":  {want: 1, seen: Observed{Nodes: mine, Pods: map[string]int{"nvidia-t4-10": 3}}, removed: []string{"nvidia-t4-1", "nvidia-t4-0"}},
		"nodes of others":             {want: 1, seen: Observed{Nodes: nodes("", "", "nvidia-t4-0")}, made: []string{"nvidia-t4-1"}, foreign: []string{"nvidia-t4-0"}},
		"nodes of another fleet":      {want: 1, seen: Observed{Nodes: nodes("other", "", "nvidia-t4-0")}, made: []string{"nvidia-t4-1"}, foreign: []string{"nvidia-t4-0"}},
		"a template of others":        {want: 3, seen: Observed{Nodes: mine, Templates: inForce, Objects: []*unstructured.Unstructured{live(v1alpha1.ResourcePoolTemplateKind, "nvidia-t4", false), live(classKind, "gpu.nvidia.com", false)}}, unowned: []string{"DeviceClass gpu.nvidia.com", "ResourcePoolTemplate nvidia-t4"}},
		"a template in the ConfigMap": {want: 3, seen: Observed{Nodes: mine, Templates: inForce}, unowned: []string{"ResourcePoolTemplate nvidia-t4"}},
		"another template": {
			want: 3, seen: Observed{Nodes: mine, Templates: []*devices.Template{&edited}}, unowned: []string{"ResourcePoolTemplate nvidia-t4"}, different: "nvidia-t4",
		},
		"all of it": {
			seen:    Observed{Nodes: mine, Templates: inForce, Objects: []*unstructured.Unstructured{class, template}},
			removed: []string{"nvidia-t4-0", "nvidia-t4-1", "nvidia-t4-10"}, removesLast: []string{"ResourcePoolTemplate/nvidia-t4", "DeviceClass/gpu.nvidia.com"},
		},
		"what others made stays": {seen: Observed{Nodes: nodes("", "", "nvidia-t4-0"), Objects: []*unstructured.Unstructured{live(classKind, "gpu.nvidia.com", false)}}},
		"a class that a claim names": {
			seen: Observed{Objects: []*unstructured.Unstructured{class, template}, Users: map[string]string{"gpu.nvidia.com": "ResourceClaim a/b"}}, removesLast: []string{"ResourcePoolTemplate/nvidia-t4"},
			kept: []string{"DeviceClass gpu.nvidia.com stays: used by ResourceClaim a/b"},
		},
		"a template that selects a node of others": {
			seen: Observed{Nodes: append(fake, mine...), Templates: inForce, Objects: []*unstructured.Unstructured{class, template}}, removed: []string{"nvidia-t4-0", "nvidia-t4-1", "nvidia-t4-10"},
			kept: []string{"DeviceClass gpu.nvidia.com stays: used by ResourcePoolTemplate nvidia-t4", "ResourcePoolTemplate nvidia-t4 stays: used by Node mine"},
		},
		"a template with a lower priority on a node of others": {
			of: "nvidia-h100-mig", seen: Observed{Nodes: typed, Templates: append(templatesOf(t, "nvidia-h100-mig"), templatesOf(t, "nvidia-h100")...), Objects: []*unstructured.Unstructured{mig}},
			removesLast: []string{"ResourcePoolTemplate/nvidia-h100-mig"},
		},
		"a class of a template that stays": {
			seen: Observed{Objects: []*unstructured.Unstructured{class, alone, template}}, removesLast: []string{"ResourcePoolTemplate/nvidia-t4"},
			kept: []string{"DeviceClass gpu.nvidia.com stays: used by ResourcePoolTemplate nvidia-l4"},
		},
		"a class of another fleet": {
			seen: Observed{Nodes: append(nodes("nvidia-l4", l4, "nvidia-l4-0"), mine...), Objects: []*unstructured.Unstructured{class, template}}, removed: []string{"nvidia-t4-0", "nvidia-t4-1", "nvidia-t4-10"},
			removesLast: []string{"ResourcePoolTemplate/nvidia-t4"}, kept: []string{"DeviceClass gpu.nvidia.com stays: used by the nodes of nvidia-l4"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of, err := Read(cli.Streams{}, []string{cmp.Or(test.of, "nvidia-t4")}, &Known{})
			require.NoError(t, err)
			p := New(of, test.want, &test.seen)
			if test.want == 0 {
				p = Delete(of, &test.seen)
			}
			var made, removed []string
			for _, node := range p.Nodes {
				made = append(made, node.Name)
			}
			for _, node := range p.RemoveNodes {
				removed = append(removed, node.Name)
			}
			require.Equal(t, test.made, made)
			require.Equal(t, test.removed, removed)
			require.Equal(t, test.removesLast, keysOf(p.Remove))
			require.Equal(t, test.foreign, p.Foreign)
			require.Equal(t, test.unowned, p.Unowned)
			require.Equal(t, test.different, p.Different)
			require.Equal(t, test.kept, p.Kept)
			require.Subset(t, keysOf(p.Make), test.makes)
		})
	}
}

// templatesOf are the templates of a profile.
func templatesOf(t *testing.T, profile string) []*devices.Template {
	t.Helper()
	of, err := Read(cli.Streams{}, []string{profile}, &Known{})
	require.NoError(t, err)
	return of.Templates
}

func keysOf(objects []*unstructured.Unstructured) (keys []string) {
	for _, object := range objects {
		keys = append(keys, objectKey(object))
	}
	return keys
}

// TestHiddenTemplate: no part of a target is left out silently.
func TestHiddenTemplate(t *testing.T) {
	t.Parallel()
	_, err := Read(cli.Streams{}, []string{"nvidia-h100", "nvidia-h100-mig"}, &Known{})
	require.EqualError(t, err, "one node cannot have all of nvidia-h100.nvidia-h100-mig: templates nvidia-h100-mig and nvidia-h100 are both for driver gpu.nvidia.com, "+
		"and the one with the higher priority counts: leave out one of them")
}

// TestSeveralProfiles: each pair of profiles is selected on one node, or the error names a
// template.
func TestSeveralProfiles(t *testing.T) {
	t.Parallel()
	names, err := ProfileNames()
	require.NoError(t, err)
	for _, name := range names {
		of, err := Read(cli.Streams{}, []string{"xilinx-u250," + name}, &Known{})
		require.NoError(t, err, name)
		for _, template := range of.Templates {
			require.True(t, template.Selects(of.Nodes("n", 0, 1)[0]), fmt.Sprint(name, template.Name))
		}
	}
}

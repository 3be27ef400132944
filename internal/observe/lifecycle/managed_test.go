package lifecycle

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestManagedNodes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		given       ManagedNodes
		annotations map[string]string
		matches     bool
		tweaked     metav1.ListOptions
		text        string
	}{
		"default, fake":  {ManagedNodes{}, map[string]string{"kwok.x-k8s.io/node": "fake"}, true, metav1.ListOptions{}, "annotations kwok.x-k8s.io/node=fake"},
		"default, real":  {ManagedNodes{}, nil, false, metav1.ListOptions{}, "annotations kwok.x-k8s.io/node=fake"},
		"default, other": {ManagedNodes{}, map[string]string{"kwok.x-k8s.io/node": "real"}, false, metav1.ListOptions{}, "annotations kwok.x-k8s.io/node=fake"},
		"annotation":     {ManagedNodes{Annotations: "a=b"}, map[string]string{"a": "b"}, true, metav1.ListOptions{}, "annotations a=b"},
		"annotation, no": {ManagedNodes{Annotations: "a in (b,c),d"}, map[string]string{"a": "b"}, false, metav1.ListOptions{}, "annotations a in (b,c),d"},
		"labels":         {ManagedNodes{Labels: "a=b"}, nil, false, metav1.ListOptions{LabelSelector: "a=b"}, "labels a=b"},
		"both":           {ManagedNodes{Annotations: "a=b", Labels: "l=m"}, map[string]string{"a": "b"}, true, metav1.ListOptions{LabelSelector: "l=m"}, "labels l=m and annotations a=b"},
		"label only":     {ManagedNodes{Annotations: "a=b", Labels: "l=m"}, nil, false, metav1.ListOptions{LabelSelector: "l=m"}, "labels l=m and annotations a=b"},
		"other label":    {ManagedNodes{Annotations: "a=b", Labels: "l=n"}, map[string]string{"a": "b"}, false, metav1.ListOptions{LabelSelector: "l=n"}, "labels l=n and annotations a=b"},
		"single":         {ManagedNodes{Single: "n"}, nil, true, metav1.ListOptions{FieldSelector: "metadata.name=n"}, "name n"},
		"single, other":  {ManagedNodes{Single: "m"}, nil, false, metav1.ListOptions{FieldSelector: "metadata.name=m"}, "name m"},
		"all":            {ManagedNodes{All: true}, nil, true, metav1.ListOptions{}, "all"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, test.given.Complete())
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"l": "m"}, Annotations: test.annotations}}
			require.Equal(t, test.matches, test.given.Matches(node))
			var options metav1.ListOptions
			test.given.Tweak(&options)
			require.Equal(t, test.tweaked, options)
			require.Equal(t, test.text, test.given.String())
		})
	}
}

// TestNodeThatLosesItsLabel is no longer fake, also when it is read by its name,
// where the server does not filter.
func TestNodeThatLosesItsLabel(t *testing.T) {
	t.Parallel()
	managed := ManagedNodes{Labels: "fake=yes"}
	require.NoError(t, managed.Complete())
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"fake": "yes"}}}
	require.True(t, managed.Matches(node))
	node.Labels = nil
	require.False(t, managed.Matches(node))
}

func TestManagedNodesRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		given ManagedNodes
		want  string
	}{
		"two":            {ManagedNodes{All: true, Single: "n"}, "choose one of --manage-all-nodes"},
		"all, label":     {ManagedNodes{All: true, Labels: "a"}, "choose one of --manage-all-nodes"},
		"one, selected":  {ManagedNodes{Single: "n", Annotations: "a"}, "choose one of --manage-all-nodes"},
		"four":           {ManagedNodes{All: true, Single: "n", Labels: "a", Annotations: "b"}, "choose one of"},
		"bad label":      {ManagedNodes{Labels: "a=b=c"}, `parse --manage-nodes-with-label-selector "a=b=c"`},
		"worse label":    {ManagedNodes{Labels: "a in"}, `parse --manage-nodes-with-label-selector "a in"`},
		"bad annotation": {ManagedNodes{Annotations: "a in ("}, `parse --manage-nodes-with-annotation-selector "a in ("`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.ErrorContains(t, test.given.Complete(), test.want)
		})
	}
}

// TestIdentity is the same however a selection is written.
func TestIdentity(t *testing.T) {
	t.Parallel()
	for want, all := range map[string][]ManagedNodes{
		"":                           {{}, {Annotations: "kwok.x-k8s.io/node=fake"}, {Annotations: " kwok.x-k8s.io/node==fake"}},
		"all":                        {{All: true}},
		"name n1":                    {{Single: "n1"}},
		"labels a=1,b=2":             {{Labels: "a=1,b=2"}, {Labels: "b=2, a = 1"}},
		"labels a and annotations b": {{Labels: "a", Annotations: "b"}},
	} {
		for _, m := range all {
			require.NoError(t, m.Complete())
			require.Equal(t, want, m.Identity())
		}
	}
}

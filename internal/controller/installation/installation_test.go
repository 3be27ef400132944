package installation

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestNew: installations that are usual side by side differ.
func TestNew(t *testing.T) {
	t.Parallel()
	lease := types.NamespacedName{Namespace: "kube-system", Name: "kwok-dra"}
	for want, id := range map[ID]ID{
		"kube-system/kwok-dra":                   New(lease, true, ""),
		"kube-system/kwok-dra (labels zone=z1)":  New(lease, true, "labels zone=z1"),
		"outside/kube-system/kwok-dra":           New(lease, false, ""),
		"outside/kube-system/kwok-dra (name n1)": New(lease, false, "name n1"),
	} {
		require.Equal(t, want, id)
	}
}

func TestRecord(t *testing.T) {
	t.Parallel()
	object := &metav1.ObjectMeta{}
	ID("").Record(object)
	require.Empty(t, object.Annotations)
	require.Empty(t, Of(object))
	ID("a").Record(object)
	require.Equal(t, ID("a"), Of(object))
	require.Equal(t, map[string]string{"dra.kwok.x-k8s.io/installation": "a"}, object.Annotations)
}

func TestAnother(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		as       ID
		recorded []ID
		want     ID
	}{
		"nothing":                       {"b", nil, ""},
		"without a record":              {"b", []ID{""}, ""},
		"its own":                       {"b", []ID{"b", ""}, ""},
		"another's":                     {"b", []ID{"", "c"}, "c"},
		"both, the other first by name": {"b", []ID{"b", "a"}, "a"},
		"both, this one first by name":  {"b", []ID{"c", "b"}, ""},
		"no installation":               {"", []ID{"a"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, test.as.Another(test.recorded))
		})
	}
}

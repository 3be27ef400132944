package cached

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestObject(t *testing.T) {
	t.Parallel()
	labelled := func() *corev1.Node {
		labels := map[string]string{}
		for _, key := range []string{"a", "b", "c", "d", "e", "f", "g"} {
			labels[key] = key + key
		}
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: labels}}
	}
	first := Keep(labelled(), "")
	for range 20 { // maps have no order
		require.Equal(t, first, Keep(labelled(), ""))
	}
	require.Equal(t, labelled(), first.Decode())
	one, two := first.Decode(), first.Decode()
	require.NotSame(t, one, two)

	other := labelled()
	other.Labels["a"] = "other"
	changed := Keep(other, first.Encoded)
	require.NotEqual(t, first, changed)
	require.Equal(t, other, changed.Decode())
	same := Keep(labelled(), first.Encoded)
	require.Same(t, unsafe.StringData(first.Encoded), unsafe.StringData(same.Encoded), "what there was is kept")
	require.NotEmpty(t, first.Encoded)
}

// TestVersions: two that differ in their versions only are encoded equally.
func TestVersions(t *testing.T) {
	t.Parallel()
	of := func(version string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", ResourceVersion: version, Labels: map[string]string{"a": "b"}}}
	}
	first := Keep(of("1"), "")
	second := Keep(of("2"), first.Encoded)
	require.Equal(t, first.Encoded, second.Encoded)
	require.Equal(t, Meta{Name: "n", UID: "u", ResourceVersion: "2"}, second.Meta)
	require.Equal(t, of("1"), first.Decode())
	require.Equal(t, of("2"), second.Decode())
}

package cached

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEncoded(t *testing.T) {
	t.Parallel()
	labelled := func() *corev1.Node {
		labels := map[string]string{}
		for _, key := range []string{"a", "b", "c", "d", "e", "f", "g"} {
			labels[key] = key + key
		}
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: labels}}
	}
	first, err := Encode(labelled(), "")
	require.NoError(t, err)
	for range 20 { // maps have no order
		again, err := Encode(labelled(), "")
		require.NoError(t, err)
		require.Equal(t, first, again)
	}
	require.Equal(t, labelled(), first.Decode())
	one, two := first.Decode(), first.Decode()
	require.NotSame(t, one, two)

	other := labelled()
	other.Labels["a"] = "other"
	changed, err := Encode(other, first)
	require.NoError(t, err)
	require.NotEqual(t, first, changed)
	require.Equal(t, other, changed.Decode())
	same, err := Encode(labelled(), first)
	require.NoError(t, err)
	require.Same(t, unsafe.StringData(string(first)), unsafe.StringData(string(same)), "what there was is kept")

	var none Encoded[corev1.Node, *corev1.Node]
	require.NotEqual(t, none, first)
}

// TestObject: two that differ in their versions only are encoded equally.
func TestObject(t *testing.T) {
	t.Parallel()
	of := func(version string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", ResourceVersion: version, Labels: map[string]string{"a": "b"}}}
	}
	first, err := Keep(of("1"), "")
	require.NoError(t, err)
	second, err := Keep(of("2"), first.Encoded)
	require.NoError(t, err)
	require.Equal(t, first.Encoded, second.Encoded)
	require.Equal(t, Meta{Name: "n", UID: "u", ResourceVersion: "2"}, second.Meta)
	require.Equal(t, of("1"), first.Decode())
	require.Equal(t, of("2"), second.Decode())
}

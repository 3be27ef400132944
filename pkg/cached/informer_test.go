package cached

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// TestTransform: what it has made stays as it is, as does what it does not know.
func TestTransform(t *testing.T) {
	t.Parallel()
	transform := Transform(func(pod *corev1.Pod) *Meta { return new(MetaOf(pod)) })
	kept, err := transform(&corev1.Pod{})
	require.NoError(t, err)
	require.Equal(t, &Meta{}, kept)
	again, err := transform(kept)
	require.NoError(t, err)
	require.Same(t, kept, again)
	odd, err := transform("odd")
	require.NoError(t, err)
	require.Equal(t, "odd", odd)
}

package expectations

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// TestUnseen: the answer stays until the cache has its version, or a newer one.
func TestUnseen(t *testing.T) {
	t.Parallel()
	for _, seen := range []string{"10", "11"} {
		var u Unseen[*corev1.Pod]
		require.False(t, u.Behind("9"), "nothing was written")
		pod := &corev1.Pod{}
		pod.ResourceVersion = "10"
		u.Answer = pod
		require.True(t, u.Behind("9"))
		require.Same(t, pod, u.Answer)
		require.False(t, u.Behind(seen))
		require.Nil(t, u.Answer)
	}
}

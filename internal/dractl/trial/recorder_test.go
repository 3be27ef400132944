package trial

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// TestIsCurrent: a recorder may be ahead of a list that took a while, and must not be behind it.
func TestIsCurrent(t *testing.T) {
	t.Parallel()
	podOf := func(uid types.UID, version string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid, ResourceVersion: version}}
	}
	for name, c := range map[string]struct {
		listed, seen *corev1.Pod
		want         bool
	}{
		"the same":                {podOf("a", "9"), podOf("a", "9"), true},
		"a newer one was seen":    {podOf("a", "9"), podOf("a", "10"), true},
		"a newer one was listed":  {podOf("a", "10"), podOf("a", "9"), false},
		"another one was listed":  {podOf("b", "9"), podOf("a", "9"), false},
		"one was seen to be gone": {podOf("a", "9"), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &Recorder{objects: map[types.UID]metav1.Object{}, sources: []Source{{List: func(context.Context) (runtime.Object, error) {
				return &corev1.PodList{Items: []corev1.Pod{*c.listed}}, nil
			}}}}
			if c.seen != nil {
				r.objects[c.seen.UID] = c.seen
			}
			isCurrent, err := r.isCurrent(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.want, isCurrent)
		})
	}
}

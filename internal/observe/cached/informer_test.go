package cached

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
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

// TestReplacedObjectIsDeletedFirst: a watch that was broken while an object was deleted and made anew tells of one update.
func TestReplacedObjectIsDeletedFirst(t *testing.T) {
	t.Parallel()
	var told []string
	handler := replacing[*corev1.Pod]{cache.TypedResourceEventHandlerDetailedFuncs[*corev1.Pod]{
		AddFunc:    func(pod *corev1.Pod, initial bool) { told = append(told, fmt.Sprintf("add %s %t", pod.UID, initial)) },
		UpdateFunc: func(old, pod *corev1.Pod) { told = append(told, fmt.Sprintf("update %s %s", old.UID, pod.UID)) },
		DeleteFunc: func(deleted cache.DeletedObject[*corev1.Pod]) {
			told = append(told, fmt.Sprintf("delete %s %s", deleted.GetKey(), deleted.OptionalObj.UID))
		},
	}}
	pod := func(uid types.UID) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: uid}}
	}
	handler.OnAdd(pod("1"), true)
	handler.OnUpdate(pod("1"), pod("1"))
	handler.OnUpdate(pod("1"), pod("2"))
	require.Equal(t, []string{"add 1 true", "update 1 1", "delete default/p 1", "add 2 false"}, told)
}

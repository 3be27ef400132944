package cached

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// TestMeta: a store takes what has only a Meta.
func TestMeta(t *testing.T) {
	t.Parallel()
	of := metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "1", ResourceVersion: "5", Labels: map[string]string{"dropped": "yes"}}
	kept := &struct{ Meta }{MetaOf(&of)}
	require.Equal(t, Meta{Namespace: "ns", Name: "a", UID: "1", ResourceVersion: "5"}, kept.Meta)
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	require.NoError(t, store.Add(kept))
	stored, exists, err := store.GetByKey("ns/a")
	require.NoError(t, err)
	require.True(t, exists)
	require.Same(t, kept, stored)
	require.Equal(t, "5", kept.GetObjectMeta().GetResourceVersion())
	require.EqualValues(t, "1", kept.GetObjectMeta().GetUID())
	require.Equal(t, "ns/a", kept.GetNamespace()+"/"+kept.GetName())
}

package story

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestClear proves that a failure is tried again unless no other try helps, and that it keeps nothing else from being deleted.
func TestClear(t *testing.T) {
	t.Parallel()
	busy := apierrors.NewInternalError(errors.New("no leader"))
	named := metav1.ObjectMeta{Name: "s-a", Labels: map[string]string{Label: "s"}}
	s := &Story{ID: "s", Steps: []Step{{Create: Objects{
		&corev1.Namespace{TypeMeta: typeOf("v1", "Namespace"), ObjectMeta: named},
		newTestPod("pod"),
		&resourcev1.ResourceSlice{TypeMeta: typeOf(resourceVersion, "ResourceSlice"), ObjectMeta: named},
		&corev1.Node{TypeMeta: typeOf("v1", "Node"), ObjectMeta: named},
	}}}}
	for name, c := range map[string]struct {
		verb, resource string
		failure        error
		lasts          time.Duration
		took           time.Duration
		want           string
	}{
		"a moment":                  {"delete-collection", "pods", busy, time.Second, time.Second, ""},
		"a moment of the namespace": {"delete", "namespaces", busy, time.Second, time.Second, ""},
		"without an end":            {"list", "pods", busy, time.Hour, DefaultPatience, "story s may have left objects: delete Pod objects: waited 10s: Internal error occurred: no leader: delete them with\n  kubectl delete resourceslices,nodes,namespaces -l dra.kwok.x-k8s.io/story=s"},
		"forbidden":                 {"delete-collection", "resourceslices", apierrors.NewForbidden(schema.GroupResource{Resource: "resourceslices"}, "", nil), time.Hour, 0, "story s may have left objects: delete ResourceSlice objects: resourceslices is forbidden: <nil>: delete them with\n  kubectl delete resourceslices,nodes,namespaces -l dra.kwok.x-k8s.io/story=s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				player, objects := newFakePlayer()
				began, deleted := time.Now(), map[string]bool{}
				answer := recordDeletions(deleted, func(action clienttesting.Action) error {
					if action.Matches(c.verb, c.resource) && time.Since(began) < c.lasts {
						return c.failure
					}
					return nil
				})
				objects.PrependReactor("*", "*", answer)
				player.client.(*fake.Clientset).PrependReactor("*", "*", answer)
				err := player.Clear(t.Context(), s)
				require.InDelta(t, c.took, time.Since(began), float64(2*pollInterval))
				for _, resource := range []string{"pods", "resourceclaims", "resourceslices", "nodes", "namespaces"} {
					require.Equal(t, c.want == "" || resource != c.resource || c.verb == "list", deleted[resource], resource)
				}
				if c.want == "" {
					require.NoError(t, err)
					return
				}
				require.EqualError(t, err, c.want)
				_, isLeft := errors.AsType[*LeftoverError](err)
				require.True(t, isLeft)
			})
		})
	}
}

// recordDeletions answers requests: it refuses some, and records of which resources the others delete objects.
func recordDeletions(deleted map[string]bool, refuse func(clienttesting.Action) error) clienttesting.ReactionFunc {
	return func(action clienttesting.Action) (bool, runtime.Object, error) {
		if err := refuse(action); err != nil {
			return true, nil, err
		}
		isDeletion := action.GetVerb() == "delete" || action.GetVerb() == "delete-collection"
		if isDeletion {
			deleted[action.GetResource().Resource] = true
		}
		return isDeletion, nil, nil
	}
}

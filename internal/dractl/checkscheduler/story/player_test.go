package story

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
)

func newFakePlayer() (*Player, *dynamicfake.FakeDynamicClient) {
	objects := dynamicfake.NewSimpleDynamicClient(scheme.Scheme)
	return &Player{objects: objects, client: fake.NewClientset(), patience: DefaultPatience}, objects
}

func newTestPod(name string) *corev1.Pod {
	return &corev1.Pod{TypeMeta: typeOf("v1", "Pod"), ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "s", Labels: map[string]string{Label: "s"}}}
}

// TestPlayOrder proves that the changes of a step come in the order in time, and a rest after them. What is gone need not
// be deleted or patched.
func TestPlayOrder(t *testing.T) {
	t.Parallel()
	player, objects := newFakePlayer()
	gone := Ref{"v1", "Pod", "gone"}
	s := &Story{ID: "s", Steps: []Step{
		{Say: "It comes.", Create: Objects{newTestPod("pod"), newTestPod("other")}, Rest: true},
		{Say: "It goes.", Patch: []Patch{{Ref: refTo(newTestPod("pod")), Merge: `{"metadata": {"labels": {"seen": "true"}}}`}, {Ref: gone, Merge: `{}`}}, Delete: []Deletion{{Ref: refTo(newTestPod("other"))}, {Ref: gone}}},
		{Say: "The end.", Rest: true},
	}}
	var pods [][]string
	require.NoError(t, player.Play(t.Context(), s, func(ctx context.Context) error {
		list, err := objects.Resource(gone.resourceOf()).Namespace("s").List(ctx, metav1.ListOptions{})
		require.NoError(t, err)
		var names []string
		for i := range list.Items {
			names = append(names, list.Items[i].GetName()+" "+list.Items[i].GetLabels()["seen"])
		}
		pods = append(pods, names)
		return nil
	}))
	require.Equal(t, [][]string{{"other ", "pod "}, {"pod true"}}, pods)
	player, _ = newFakePlayer()
	isUneasy := errors.New("no rest")
	require.ErrorIs(t, player.Play(t.Context(), s, func(context.Context) error { return isUneasy }), isUneasy)
}

// TestCreationsWait proves that a creation is tried again while the API server may not have seen what it needs, or while
// one of the same name is being deleted, and only then.
func TestCreationsWait(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		refusal  error
		existing *metav1.Time
		waits    bool
	}{
		"forbidden":     {refusal: apierrors.NewForbidden(corev1.Resource("pods"), "pod", errors.New("no PriorityClass")), waits: true},
		"being deleted": {refusal: apierrors.NewAlreadyExists(corev1.Resource("pods"), "pod"), existing: &metav1.Time{Time: time.Unix(1, 0)}, waits: true},
		"exists":        {refusal: apierrors.NewAlreadyExists(corev1.Resource("pods"), "pod")},
		"invalid":       {refusal: apierrors.NewBadRequest("invalid")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				player, objects := newFakePlayer()
				started := time.Now()
				objects.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
					return time.Since(started) < time.Second, nil, test.refusal
				})
				objects.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
					existing := &unstructured.Unstructured{Object: map[string]any{}}
					existing.SetDeletionTimestamp(test.existing)
					return true, existing, nil
				})
				err := player.createObject(t.Context(), &Story{ID: "s"}, newTestPod("pod"))
				if test.waits {
					require.NoError(t, err)
					require.InDelta(t, time.Second, time.Since(started), float64(2*pollInterval))
					return
				}
				require.ErrorIs(t, err, test.refusal)
				require.ErrorContains(t, err, "create Pod pod")
				require.Zero(t, time.Since(started))
			})
		})
	}
}

// TestAwait proves that a wait ends with what was wrong, though its last try was cut off.
func TestAwait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		player, _ := newFakePlayer()
		isMissing := errors.New("missing")
		started := time.Now()
		err := player.await(t.Context(), func(ctx context.Context) error {
			if time.Since(started) < player.patience/2 {
				return isMissing
			}
			<-ctx.Done()
			return finalError{ctx.Err()}
		})
		require.ErrorIs(t, err, isMissing)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, player.patience, time.Since(started))

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, player.await(ctx, func(context.Context) error { return isMissing }), context.Canceled)
	})
}

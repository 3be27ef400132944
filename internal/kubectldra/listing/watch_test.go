package listing_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/dractl/follow"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/claims"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/internal/worldtest"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/pods"
)

// TestWatch shows the answer, then the rows that change, and not that time passes.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := worldtest.New(t,
			worldtest.Slice("a", "gpu-0"), worldtest.Claim("train", "a", []string{"gpu-0"}, "train"), worldtest.Pod("train", "a", "train"),
			worldtest.Pod("wants", "", "wants"), worldtest.Claim("wants", "", nil),
		)
		showsPods, podsTold, endPods := w.Watch(pods.New)
		showsClaims, claimsTold, endClaims := w.Watch(claims.New, "--no-headers")
		time.Sleep(5*time.Second + follow.Interval/2) // what is written at once is then seen at once
		require.Regexp(t, `^1 Pod has [^\n]*\n\nPOD [^\n]*\ntrain [^\n]* allocated [^\n]*\nwants [^\n]* waiting [^\n]*\n$`, showsPods.Take())
		require.Regexp(t, `^train +allocated [^\n]*\nwants +waiting [^\n]*\n$`, showsClaims.Take())

		time.Sleep(5 * time.Minute)
		require.Empty(t, showsPods.Take()+showsClaims.Take(), "only ages have changed")

		_, err := w.Client.CoreV1().Pods(worldtest.Namespace).Update(t.Context(), worldtest.Pod("train", "a", "train", worldtest.Prepared), metav1.UpdateOptions{})
		require.NoError(t, err)
		time.Sleep(5 * time.Second)
		require.Regexp(t, `^POD [^\n]*\ntrain [^\n]* prepared [^\n]*\n$`, showsPods.Take())
		require.Regexp(t, `^train +prepared [^\n]*\n$`, showsClaims.Take())

		require.NoError(t, w.Client.ResourceV1().ResourceClaims(worldtest.Namespace).Delete(t.Context(), "wants", metav1.DeleteOptions{}))
		require.NoError(t, w.Client.CoreV1().Pods(worldtest.Namespace).Delete(t.Context(), "wants", metav1.DeleteOptions{}))
		time.Sleep(5 * time.Second)
		require.Regexp(t, `^POD [^\n]*\nwants [^\n]* released [^\n]*\n$`, showsPods.Take())
		require.Regexp(t, `^wants +released [^\n]*\n$`, showsClaims.Take())
		require.Empty(t, podsTold.Take()+claimsTold.Take())
		require.NoError(t, endPods())
		require.NoError(t, endClaims())
	})
}

// TestWatchRights leaves out what the user may not watch, and says so. Without claims there is no answer.
func TestWatchRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := worldtest.New(t, worldtest.PodsAndClaims())
		w.Forbid("resourceslices")
		shows, told, end := w.Watch(pods.New, "serve")
		time.Sleep(5 * time.Second)
		require.Regexp(t, `\nserve [^\n]* gpu-3 +<none> +failing `, shows.Take())
		require.Equal(t, "cannot watch resourceslices: ask for the ClusterRole dra-viewer, or for the right to watch them\n", told.Take())
		require.NoError(t, end())
		w.Forbid("resourceclaims")
		_, _, end = w.Watch(claims.New, "-A")
		time.Sleep(5 * time.Second)
		require.EqualError(t, end(), "cannot watch resourceclaims in all namespaces: ask for the ClusterRole dra-viewer, or for the right to watch them")
	})
}

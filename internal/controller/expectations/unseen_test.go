package expectations

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// TestUnseen: the answer stays until the cache has its version, or a newer one.
func TestUnseen(t *testing.T) {
	t.Parallel()
	for _, seen := range []string{"10", "11"} {
		var u Unseen[*corev1.Pod]
		require.Equal(t, Current, u.Compare("9"), "nothing was written")
		pod := &corev1.Pod{}
		pod.ResourceVersion = "10"
		u.Answered(pod, pod.ResourceVersion)
		require.Equal(t, Behind, u.Compare("9"))
		require.Same(t, pod, u.Answer)
		require.Equal(t, Current, u.Compare(seen))
		require.Nil(t, u.Answer)
	}
}

// TestUnseenForTooLong: a version that does not come within the limit may never come. The API server's word counts then.
func TestUnseenForTooLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var u Unseen[struct{}]
		u.Answered(struct{}{}, "10")
		time.Sleep(Limit - time.Nanosecond)
		require.Equal(t, Behind, u.Compare("9"))
		time.Sleep(time.Nanosecond)
		require.Equal(t, Doubtful, u.Compare("9"))
		u.Answered(struct{}{}, "8")
		require.Equal(t, Current, u.Compare("9"), "the API server has gone back")
	})
}

// TestDeadlines: a key is requeued once, where the cache does not see its writes in time.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var d Deadlines[string]
		requeued := make(chan string, 10)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go d.Run(ctx, func(key string) { requeued <- key })
		d.Begin("seen")
		d.Begin("lost")
		time.Sleep(Limit / 2)
		synctest.Wait()
		d.Begin("lost")
		d.End("seen")
		require.Empty(t, requeued)
		time.Sleep(Limit)
		synctest.Wait()
		require.Equal(t, "lost", <-requeued)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Empty(t, requeued)
	})
}

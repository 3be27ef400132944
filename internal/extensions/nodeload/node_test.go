package nodeload

import (
	"context"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kwok-dra/kwok-dra/internal/observe/cached"
	"github.com/kwok-dra/kwok-dra/internal/testing/apitest"
	"github.com/kwok-dra/kwok-dra/internal/testing/runtest"
)

// TestStepsAreSentOnce changes a Pod again and again just as its last step has been sent. Others that want the same lock make
// it likely that the change comes between any two holds of it.
func TestStepsAreSentOnce(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	c := newTestClient(t, func(*http.Request) (*http.Response, error) {
		sent.Add(1)
		return respond(http.StatusOK, http.NoBody), nil
	})
	c.limiter.SetLimit(rate.Inf)
	pods := newPods(apitest.New(newPod()))
	runtest.UntilEnd(t.Context(), t, pods.Run)
	require.True(t, cache.WaitFor(t.Context(), "", pods.Synced()...))
	n := &node{Controller: &Controller{pods: pods}, kubelet: c, ctx: t.Context(), pods: map[types.UID]*pod{}}
	version := 0
	change := func(phase podPhase) {
		version++
		n.podChanged(&podView{Meta: cached.Meta{Namespace: "default", Name: "a", UID: "pod-uid", ResourceVersion: strconv.Itoa(version)}, node: "node-0", phase: phase})
	}
	change(podPending)
	change(podRunning)
	n.sending.Wait()
	stop := runtest.UntilEnd(t.Context(), t, slices.Repeat([]func(context.Context){func(ctx context.Context) {
		for ctx.Err() == nil {
			n.mu.Lock()
			runtime.Gosched()
			n.mu.Unlock()
		}
	}}, 4)...)
	const changes = 200
	began := sent.Load()
	for i := range int64(changes) {
		change(podDeleting)
		change(podRunning)
		for sent.Load() <= began+i {
			runtime.Gosched()
		}
	}
	stop()
	n.sending.Wait()
	require.EqualValues(t, changes, sent.Load()-began, "a kubelet reads a Pod once when it is deleted")
}

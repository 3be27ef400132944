package resourceslice

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/internal/testing/runtest"
)

// TestOthersHoldUpForAWhile: without the right to read Pods, devices are published
// all the same.
func TestOthersHoldUpForAWhile(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		managed := &lifecycle.ManagedNodes{}
		require.NoError(t, managed.Complete())
		server := newServer(fakeNode("n", true))
		server.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), "", nil)
		})
		caches := observe.New(server, managed)
		publisher := New(Options{Client: server, Config: storeOf(t, template("t", "d.example.com", plain)), Caches: caches, Recorder: record.NewFakeRecorder(1)})
		ctx, cancel := context.WithCancel(runtest.QuietContext(t))
		var running sync.WaitGroup
		running.Go(func() { caches.Run(ctx) })
		running.Go(func() { publisher.Run(ctx, 1) })
		time.Sleep(cacheSyncTimeout - time.Second)
		synctest.Wait()
		require.Empty(t, caches.Slices.Keys())
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Len(t, caches.Slices.Keys(), 1)
		cancel()
		running.Wait()
	})
}

func TestRunThatEndsBeforeTheCachesAreFull(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		managed := &lifecycle.ManagedNodes{All: true}
		require.NoError(t, managed.Complete())
		server := newServer()
		publisher := New(Options{Client: server, Config: storeOf(t, ""), Caches: observe.New(server, managed), Recorder: record.NewFakeRecorder(1)})
		ctx, cancel := context.WithCancel(runtest.QuietContext(t))
		cancel()
		publisher.Run(ctx, 1)
	})
}

package slices

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/record"

	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
)

// never is a cache that does not become complete.
type never struct{}

func (never) Name() string          { return "never" }
func (never) Done() <-chan struct{} { return nil }

// TestOthersHoldUpForAWhile: without the right to read Pods, devices are published
// all the same.
func TestOthersHoldUpForAWhile(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		managed := &lifecycle.ManagedNodes{}
		require.NoError(t, managed.Complete())
		server := newServer(fakeNode("n", true))
		nodes := lifecycle.NewNodes(server, managed)
		publisher, err := New(Options{Client: server, Config: storeOf(t, template("t", "d.example.com", plain)), Nodes: nodes, Recorder: record.NewFakeRecorder(1)})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(quiet(t))
		var running sync.WaitGroup
		running.Go(func() { nodes.Run(ctx) })
		running.Go(func() { publisher.Run(ctx, 1, never{}) })
		time.Sleep(othersPatience - time.Second)
		synctest.Wait()
		require.Empty(t, publisher.Slices())
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Len(t, publisher.Slices(), 1)
		cancel()
		running.Wait()
	})
}

func TestRunThatEndsBeforeTheCachesAreFull(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		managed := &lifecycle.ManagedNodes{All: true}
		require.NoError(t, managed.Complete())
		server := newServer()
		nodes := lifecycle.NewNodes(server, managed)
		publisher, err := New(Options{Client: server, Config: storeOf(t, ""), Nodes: nodes, Recorder: record.NewFakeRecorder(1)})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(quiet(t))
		cancel()
		publisher.Run(ctx, 1)
	})
}

package view

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/controller/shard"
	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
)

// TestStandby: a replica that does not lead has the files, since any kwok may be beside it, and writes
// no objects.
func TestStandby(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, claimstest.NewNode("n"), pod, claim)
		w.owner = shard.New(shard.Options{Mode: shard.Leader, Client: w.Server, Host: "h", Namespace: "default", Name: "l"})
		w.start(w.directory)
		require.Empty(t, w.took())
		require.NotEmpty(t, w.env("uid-of-p"))
	})
}

// TestOtherShard: with leases the files are where the kwok of the node is, and nowhere else.
func TestOtherShard(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, claimstest.NewNode("n"), pod, claim)
		w.start(w.directory)
		require.NotEmpty(t, w.took())
		w.stop()
		w.owner = shard.New(shard.Options{Mode: shard.Lease, Client: w.Server, Host: "h", Namespace: "default", Name: "l"})
		w.start(w.directory)
		require.NotEmpty(t, w.env("uid-of-p"), "it is not known yet whose the node is")
		go w.owner.Run(t.Context())
		require.Empty(t, w.took())
		require.Empty(t, w.env("uid-of-p"))
	})
}

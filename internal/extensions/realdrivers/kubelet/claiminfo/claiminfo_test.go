package claiminfo

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func claim(name string, uid types.UID, drivers ...string) Claim {
	asked := map[string]DriverState{}
	for _, driver := range drivers {
		asked[driver] = DriverState{}
	}
	return Claim{&resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: uid}}, asked}
}

func open(t *testing.T, file string) *Cache {
	t.Helper()
	c, err := Open(file)
	require.NoError(t, err)
	return c
}

// prepare prepares claims for a Pod.
func prepare(t *testing.T, c *Cache, pod types.UID, claims ...Claim) {
	t.Helper()
	left, err := c.Join(pod, claims)
	require.NoError(t, err)
	for _, claim := range left {
		for driver := range claim.Drivers {
			require.NoError(t, c.SetDevices(claim, driver, []Device{{PoolName: "pool", DeviceName: "device-of-" + driver, CDIDeviceIDs: []string{"a/b=c"}}}))
		}
	}
	require.NoError(t, c.SetPrepared(left))
}

// TestShared: a claim is prepared for its first Pod and unprepared after its last.
func TestShared(t *testing.T) {
	t.Parallel()
	c := open(t, filepath.Join(t.TempDir(), "state"))
	shared := claim("shared", "1", "d")
	prepare(t, c, "first", shared)
	left, err := c.Join("second", []Claim{shared})
	require.NoError(t, err)
	require.Empty(t, left)
	require.True(t, c.Prepared("second", shared.ResourceClaim))

	require.Empty(t, c.Leave("first"))
	require.False(t, c.Prepared("first", shared.ResourceClaim))
	last := c.Leave("second")
	require.Len(t, last, 1)
	require.Contains(t, last[0].DriverState, "d")

	_, err = c.Join("third", []Claim{shared})
	require.EqualError(t, err, "ResourceClaim shared is being unprepared")
	failed := errors.New("busy")
	require.ErrorIs(t, c.SetUnprepared(last, failed), failed)
	require.Len(t, c.Leave("second"), 1, "once more")
	require.NoError(t, c.SetUnprepared(last, nil))
	require.Empty(t, c.Pods())
	require.Empty(t, c.Devices(shared.ResourceClaim, "d"))
}

// TestOldClaim: a claim waits for the one that had its name before.
func TestOldClaim(t *testing.T) {
	t.Parallel()
	c := open(t, filepath.Join(t.TempDir(), "state"))
	prepare(t, c, "pod", claim("c", "1", "d"))
	_, err := c.Join("later", []Claim{claim("other", "3", "d"), claim("c", "2", "d")})
	require.EqualError(t, err, "old ResourceClaim with same name c and different UID 1 still exists (previous pod force-deleted?!)")
	require.False(t, c.Prepared("pod", claim("c", "2").ResourceClaim))
	require.False(t, c.Pods().Has("later"), "nothing is noted of a Pod that fails")
}

// TestRestart: what is prepared is known to the next process, which asks drivers once more before the
// next Pod.
func TestRestart(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state")
	shared := claim("shared", "1", "d", "e")
	prepare(t, open(t, file), "first", shared)

	c := open(t, file)
	require.False(t, c.Prepared("first", shared.ResourceClaim))
	require.Equal(t, "device-of-e", c.Devices(shared.ResourceClaim, "e")[0].DeviceName)
	left, err := c.Join("second", []Claim{shared})
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.NoError(t, c.SetPrepared(left))
	c.Restart()
	require.False(t, c.Prepared("second", shared.ResourceClaim))

	require.Empty(t, open(t, file).Leave("first"))
	c = open(t, file)
	require.Empty(t, c.Leave("second"))
	require.Len(t, c.Leave("first"), 1)
}

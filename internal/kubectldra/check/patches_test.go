package check

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/kubectldra/internal/worldtest"
)

// TestPatches applies printed patches as the API server does: to the claim as it was, and late, to what it has become.
func TestPatches(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		harm, change func(claim *resourcev1.ResourceClaim)
		// left are the consumers after the patch.
		left []string
	}{
		"stale reservations, and one of them is another Pod's now": {
			func(claim *resourcev1.ResourceClaim) {
				reserved := worldtest.Claim("c", "", nil, "gone-0", "train", "gone-1", "gone-2").Status.ReservedFor
				claim.Status.ReservedFor = reserved
			},
			func(claim *resourcev1.ResourceClaim) { claim.Status.ReservedFor[0].UID = "another" },
			[]string{"train"},
		},
		"devices of nobody, and a Pod has them now": {
			func(claim *resourcev1.ResourceClaim) {
				claim.Status.ReservedFor = nil
				claim.Status.Devices = []resourcev1.AllocatedDeviceStatus{{Driver: worldtest.Driver, Pool: "a", Device: "gpu-0"}}
			},
			func(claim *resourcev1.ResourceClaim) {
				claim.ResourceVersion = "8"
				claim.Status.ReservedFor = worldtest.Claim("c", "", nil, "new").Status.ReservedFor
			},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := healthy()
			claim := w.Claims[0]
			test.harm(claim)
			if claim.Status.ReservedFor == nil {
				w.Pods = nil
			}
			found, _ := Check(t.Context(), w)
			require.Len(t, found, 1)
			_, text, _ := strings.Cut(strings.TrimSuffix(found[0].Fix, "'"), "--type=json -p '")
			patch, err := jsonpatch.DecodePatch([]byte(text))
			require.NoError(t, err)
			apply := func() (patched resourcev1.ResourceClaim, err error) {
				before, err := json.Marshal(claim)
				require.NoError(t, err)
				after, err := patch.Apply(before)
				if err == nil {
					require.NoError(t, json.Unmarshal(after, &patched))
				}
				return patched, err
			}
			patched, err := apply()
			require.NoError(t, err)
			var left []string
			for _, consumer := range patched.Status.ReservedFor {
				left = append(left, consumer.Name)
			}
			require.Equal(t, test.left, left)
			require.Equal(t, test.left != nil, patched.Status.Allocation != nil)
			require.Empty(t, patched.Status.Devices)
			test.change(claim)
			_, err = apply()
			require.ErrorIs(t, err, jsonpatch.ErrTestFailed)
		})
	}
}

// TestFinalizersOfOneClaim: a later claim of the same name keeps its finalizers.
func TestFinalizersOfOneClaim(t *testing.T) {
	t.Parallel()
	w := healthy()
	w.Claims[0].DeletionTimestamp, w.Claims[0].Status.ReservedFor, w.Pods = new(worldtest.At(60)), nil, nil
	found, _ := Check(t.Context(), w)
	require.Len(t, found, 1)
	require.Equal(t, `kubectl patch resourceclaim train -n ml --type=merge -p '{"metadata":{"uid":"claim-train","finalizers":null}}'`, found[0].Fix)
}

package plan

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/observe/cached"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

func TestPatch(t *testing.T) {
	t.Parallel()
	node, pool := fakeNode("n", true), poolOf("p", 1)
	slice := slicesOf(t, node, &pool)[0]
	slice.Spec.Pool.Generation = 3
	update := Update{Existing: &facts.Slice{Meta: cached.Meta{UID: "u", ResourceVersion: "7"}}, Slice: slice}
	patch, err := update.Patch()
	require.NoError(t, err)

	existing := slice.DeepCopy()
	existing.UID, existing.ResourceVersion = "u", "6"
	existing.Labels = map[string]string{"mine": "stays"}
	existing.Annotations = map[string]string{"mine": "stays"}
	existing.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: "a"}, {Kind: "Pod", Name: "b"}}
	existing.Spec = resourcev1.ResourceSliceSpec{
		Driver: "d", NodeName: new("n"), Pool: resourcev1.ResourcePool{Name: "p", Generation: 9, ResourceSliceCount: 9},
		Devices:                []resourcev1.Device{{Name: "a", Taints: []resourcev1.DeviceTaint{{Key: "k"}}}, {Name: "b"}},
		AllNodes:               new(true),
		NodeSelector:           &corev1.NodeSelector{},
		PerDeviceNodeSelection: new(true),
		SharedCounters:         []resourcev1.CounterSet{{Name: "c"}},
		PartitionTypeAttribute: new(resourcev1.FullyQualifiedName("a/b")),
		SkipNodeOperations:     []resourcev1.SkipNodeOperation{"a"},
	}
	requireNoZeroField(t, existing.Spec)
	before, err := json.Marshal(existing)
	require.NoError(t, err)
	after, err := jsonpatch.MergePatch(before, patch)
	require.NoError(t, err)
	var got resourcev1.ResourceSlice
	require.NoError(t, json.Unmarshal(after, &got))
	require.Equal(t, slice.Spec, got.Spec)
	require.Equal(t, slice.OwnerReferences, got.OwnerReferences)
	require.Equal(t, map[string]string{"mine": "stays", "dra.kwok.x-k8s.io/managed-by": "kwok-dra"}, got.Labels)
	require.Equal(t, existing.Annotations, got.Annotations)
	require.Equal(t, "7", got.ResourceVersion, "the server refuses it where the slice has changed since")
	require.EqualValues(t, "u", got.UID)
}

// requireNoZeroField fails when upstream has a new field that the test does not
// know: it must be in absent, or kwok-dra must set it.
func requireNoZeroField(t *testing.T, spec resourcev1.ResourceSliceSpec) {
	t.Helper()
	value := reflect.ValueOf(spec)
	for i := range value.NumField() {
		require.False(t, value.Field(i).IsZero(), value.Type().Field(i).Name)
	}
}

// TestPatchNamesEveryField: a merge patch leaves alone what it does not name.
func TestPatchNamesEveryField(t *testing.T) {
	t.Parallel()
	node, pool := fakeNode("n", true), poolOf("p", 1)
	update := Update{Existing: &facts.Slice{}, Slice: slicesOf(t, node, &pool)[0]}
	patch, err := update.Patch()
	require.NoError(t, err)
	var decoded struct {
		Spec map[string]json.RawMessage `json:"spec"`
	}
	require.NoError(t, json.Unmarshal(patch, &decoded))
	spec := reflect.TypeFor[resourcev1.ResourceSliceSpec]()
	for field := range spec.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		require.Contains(t, decoded.Spec, name)
	}
}

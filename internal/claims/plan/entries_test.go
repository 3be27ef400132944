package plan

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
)

func TestShown(t *testing.T) {
	t.Parallel()
	ours := []metav1.ManagedFieldsEntry{{Manager: facts.Manager, Subresource: "status"}}
	entry := func(name, data string) resourcev1.AllocatedDeviceStatus {
		entry := resourcev1.AllocatedDeviceStatus{Driver: "d", Pool: "n", Device: name}
		if data != "" {
			entry.Data = &runtime.RawExtension{Raw: []byte(data)}
		}
		return entry
	}
	named := func(entry resourcev1.AllocatedDeviceStatus, name string) resourcev1.AllocatedDeviceStatus {
		entry.NetworkData = &resourcev1.NetworkDeviceData{InterfaceName: name}
		return entry
	}
	type entries = []resourcev1.AllocatedDeviceStatus
	for name, test := range map[string]struct {
		managed   []metav1.ManagedFieldsEntry
		have      entries
		wanted    entries
		namesPods bool
		want      bool
	}{
		"nothing wanted":              {nil, nil, nil, false, true},
		"not there":                   {nil, nil, entries{entry("a", "")}, false, false},
		"there":                       {ours, entries{entry("a", "")}, entries{entry("a", "")}, false, true},
		"someone else's":              {nil, entries{entry("a", "")}, entries{entry("a", "")}, false, false},
		"another device":              {ours, entries{entry("b", "")}, entries{entry("a", "")}, false, false},
		"one of two":                  {ours, entries{entry("a", "")}, entries{entry("a", ""), entry("b", "")}, false, false},
		"more than wanted":            {ours, entries{entry("a", ""), entry("b", "")}, entries{entry("a", "")}, false, true},
		"other data, prepared once":   {ours, entries{entry("a", `{"x":1}`)}, entries{entry("a", `{"x":2}`)}, false, true},
		"other Pods":                  {ours, entries{entry("a", `{"x":1}`)}, entries{entry("a", `{"x":2}`)}, true, false},
		"same Pods, other order":      {ours, entries{entry("a", `{"x":1,"y":[{"b":1,"a":2}]}`)}, entries{entry("a", `{"y": [{"a":2,"b":1}], "x": 1}`)}, true, true},
		"order in lists counts":       {ours, entries{entry("a", `{"x":[1,2]}`)}, entries{entry("a", `{"x":[2,1]}`)}, true, false},
		"Pods in networkData":         {ours, entries{named(entry("a", ""), "p")}, entries{named(entry("a", ""), "p")}, true, true},
		"other Pods in networkData":   {ours, entries{named(entry("a", ""), "p")}, entries{named(entry("a", ""), "q")}, true, false},
		"data gone, and it names one": {ours, entries{entry("a", "")}, entries{entry("a", `{"x":1}`)}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := claimstest.Allocated("c")
			claim.ManagedFields, claim.Status.Devices = test.managed, test.have
			want := &Entries{Claim: claim, Devices: test.wanted, NamePods: test.namesPods}
			require.Equal(t, test.want, want.Shown())
		})
	}
}

func TestSameDataThatIsNoJSON(t *testing.T) {
	t.Parallel()
	raw := func(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }
	require.True(t, sameData(nil, nil))
	require.False(t, sameData(raw("{}"), nil))
	require.True(t, sameData(raw("{"), raw("{")))
	require.False(t, sameData(raw("{"), raw("}")))
}

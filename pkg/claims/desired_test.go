package claims

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

func shared(share types.UID, result resourcev1.DeviceRequestAllocationResult) resourcev1.DeviceRequestAllocationResult {
	result.ShareID = &share
	return result
}

func idsOf(entries []resourcev1.AllocatedDeviceStatus) []deviceID {
	var ids []deviceID
	for i := range entries {
		ids = append(ids, entryID(&entries[i]))
	}
	return ids
}

func TestDesire(t *testing.T) {
	t.Parallel()
	gpu := func(name string) deviceID { return deviceID{driver: "d", pool: "n", device: name} }
	for name, test := range map[string]struct {
		spec    string
		results []resourcev1.DeviceRequestAllocationResult
		want    []deviceID
	}{
		"one":             {"", []resourcev1.DeviceRequestAllocationResult{device("d", "gpu-0")}, []deviceID{gpu("gpu-0")}},
		"in order":        {"", []resourcev1.DeviceRequestAllocationResult{device("d", "gpu-1"), device("d", "gpu-0")}, []deviceID{gpu("gpu-1"), gpu("gpu-0")}},
		"twice":           {"", []resourcev1.DeviceRequestAllocationResult{device("d", "gpu-0"), device("d", "gpu-0")}, []deviceID{gpu("gpu-0")}},
		"foreign":         {"", []resourcev1.DeviceRequestAllocationResult{device("other", "gpu-0")}, nil},
		"foreign and own": {"", []resourcev1.DeviceRequestAllocationResult{device("other", "x"), device("d", "gpu-0")}, []deviceID{gpu("gpu-0")}},
		"two shares": {
			"",
			[]resourcev1.DeviceRequestAllocationResult{shared("s1", device("d", "gpu-0")), shared("s2", device("d", "gpu-0"))},
			[]deviceID{{"d", "n", "gpu-0", "s1"}, {"d", "n", "gpu-0", "s2"}},
		},
		"None":             {"  claimStatus: {mode: None}\n", []resourcev1.DeviceRequestAllocationResult{device("d", "gpu-0")}, nil},
		"None, with data":  {"  claimStatus: {mode: None, data: {a: b}}\n", []resourcev1.DeviceRequestAllocationResult{device("d", "gpu-0")}, []deviceID{gpu("gpu-0")}},
		"nothing":          {"", nil, nil},
		"of no known pool": {"  claimStatus: {mode: None}\n", []resourcev1.DeviceRequestAllocationResult{device("other", "gpu-9")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := allocated("c")
			allocate(claim, test.results...)
			want, err := desire(claim, sourceOf(setOf(t, template("d", test.spec))))
			require.NoError(t, err)
			require.Equal(t, test.want, idsOf(want.entries))
			require.False(t, want.namesPods)
		})
	}
}

func TestDesireFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spec   string
		result resourcev1.DeviceRequestAllocationResult
		want   string
	}{
		"no such device": {"", device("d", "gpu-9"), "requested device is not allocatable: gpu-9 in pool n of driver d"},
		"no such field":  {"  claimStatus: {data: {a: '{{ .Device.attributes.x }}'}}\n", device("d", "gpu-0"), "render template of-d for device gpu-0: "},
		"no object":      {"  claimStatus: {data: '{{ .Result.device }}'}\n", device("d", "gpu-0"), "must yield an object"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := allocated("c")
			allocate(claim, test.result)
			_, err := desire(claim, sourceOf(setOf(t, template("d", test.spec))))
			require.ErrorContains(t, err, test.want)
		})
	}
}

// TestEntry has what the template says, and the condition Ready unless the mode
// is None.
func TestEntry(t *testing.T) {
	t.Parallel()
	const spec = `  claimStatus:
    mode: %s
    data: {device: '{{ .Device.name }}', node: '{{ .Node.metadata.uid }}', claim: '{{ .Claim.namespace }}/{{ .Claim.name }}/{{ .Claim.uid }}', pods: '{{ range .Pods }}{{ .name }}={{ .uid }},{{ end }}'}
    networkData: {interfaceName: 'eth-{{ .Result.device }}', ips: [10.0.0.7/24], hardwareAddress: "00:00:5e:00:53:01"}
`
	for mode, conditions := range map[string]int{"Ready": 1, "None": 0} {
		claim := allocated("c")
		allocate(claim, shared("s", device("d", "gpu-2")))
		set := setOf(t, template("d", fmt.Sprintf(spec, mode)))
		want, err := desire(claim, sourceOf(set, newPod("q"), newPod("p")))
		require.NoError(t, err)
		require.True(t, want.namesPods)
		entry := want.entries[0]
		require.Equal(t, "s", *entry.ShareID)
		require.Len(t, entry.Conditions, conditions)
		require.JSONEq(t, `{"device": "gpu-2", "node": "uid-of-n", "claim": "default/c/uid-of-c", "pods": "p=uid-of-p,q=uid-of-q,"}`, string(entry.Data.Raw))
		require.Equal(t, &resourcev1.NetworkDeviceData{InterfaceName: "eth-gpu-2", IPs: []string{"10.0.0.7/24"}, HardwareAddress: "00:00:5e:00:53:01"}, entry.NetworkData)
	}
}

// parameters is opaque configuration that is known by its number.
func parameters(number string, source resourcev1.AllocationConfigSource, driver string, requests ...string) resourcev1.DeviceAllocationConfiguration {
	return resourcev1.DeviceAllocationConfiguration{Source: source, Requests: requests, DeviceConfiguration: resourcev1.DeviceConfiguration{
		Opaque: &resourcev1.OpaqueDeviceConfiguration{Driver: driver, Parameters: runtime.RawExtension{Raw: []byte(number)}},
	}}
}

func TestConfigOf(t *testing.T) {
	t.Parallel()
	const class, own = resourcev1.AllocationConfigSourceClass, resourcev1.AllocationConfigSourceClaim
	for name, test := range map[string]struct {
		request string
		configs []resourcev1.DeviceAllocationConfiguration
		want    string
	}{
		"none":               {"gpu", nil, "[]"},
		"class before claim": {"gpu", []resourcev1.DeviceAllocationConfiguration{parameters("1", own, "d"), parameters("2", class, "d")}, "[2,1]"},
		"order is kept": {"gpu", []resourcev1.DeviceAllocationConfiguration{
			parameters("1", own, "d"), parameters("2", class, "d"), parameters("3", own, "d"), parameters("4", class, "d"),
		}, "[2,4,1,3]"},
		"per request": {"gpu", []resourcev1.DeviceAllocationConfiguration{
			parameters("1", own, "d", "gpu"), parameters("2", own, "d", "other"), parameters("3", own, "d", "other", "gpu"),
		}, "[1,3]"},
		"subrequest": {"gpu/big", []resourcev1.DeviceAllocationConfiguration{
			parameters("1", own, "d", "gpu"), parameters("2", own, "d", "gpu/big"), parameters("3", own, "d", "gpu/small"), parameters("4", own, "d", "big"),
		}, "[1,2]"},
		"another driver": {"gpu", []resourcev1.DeviceAllocationConfiguration{parameters("1", own, "e"), parameters("2", class, "d")}, "[2]"},
		"not opaque":     {"gpu", []resourcev1.DeviceAllocationConfiguration{{Source: own}}, "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := allocated("c")
			claim.Status.Allocation.Devices.Config = test.configs
			before := claim.DeepCopy()
			result := device("d", "gpu-0")
			result.Request = test.request
			got, err := json.Marshal(configOf(claim, &result))
			require.NoError(t, err)
			require.Equal(t, test.want, string(got))
			require.Equal(t, before, claim, "the claim of the cache is left as it is")
		})
	}
}

func TestShows(t *testing.T) {
	t.Parallel()
	ours := []metav1.ManagedFieldsEntry{{Manager: fieldManager, Subresource: "status"}}
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
			claim := allocated("c")
			claim.ManagedFields, claim.Status.Devices = test.managed, test.have
			want := &desired{claim: claim, entries: test.wanted, namesPods: test.namesPods}
			require.Equal(t, test.want, want.shows())
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

// TestSlimClaim keeps the field managers of kwok-dra that have entries.
func TestSlimClaim(t *testing.T) {
	t.Parallel()
	fields := metav1.NewFieldsV1
	claim := allocated("c", newPod("p"))
	claim.ResourceVersion, claim.Annotations = "5", map[string]string{"a": "b"}
	claim.OwnerReferences = []metav1.OwnerReference{{UID: "u"}}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu"}}
	claim.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "kube-scheduler", Subresource: "status", FieldsV1: fields(`{"f:status":{"f:devices":{}}}`)},
		{Manager: fieldManager, FieldsV1: fields(`{"f:metadata":{"f:devices":{}}}`)},
		{Manager: fieldManager, Subresource: "status", FieldsV1: fields(`{"f:status":{"f:devices":{}}}`)},
		{Manager: bindingManager, Subresource: "status", FieldsV1: fields(`{}`)},
	}
	slim := slimClaim(claim)
	require.Equal(t, []metav1.ManagedFieldsEntry{{Manager: fieldManager, Subresource: "status"}}, slim.ManagedFields)
	require.Equal(t, claim.Status, slim.Status)
	require.Equal(t, claim.OwnerReferences, slim.OwnerReferences)
	require.Equal(t, "5", slim.ResourceVersion)
	require.Empty(t, slim.Spec)

	object, err := observeClaim(claim)
	require.NoError(t, err)
	observed := object.(*observedClaim)
	require.Equal(t, slim, observed.Decode())
	require.Equal(t, "5", observed.GetObjectMeta().GetResourceVersion())
	require.True(t, observed.ours)
	again, err := observeClaim(observed)
	require.NoError(t, err)
	require.Same(t, observed, again, "an informer may hand it its own result")
	claim.ManagedFields = nil
	object, err = observeClaim(claim)
	require.NoError(t, err)
	require.False(t, object.(*observedClaim).ours, "nothing of it is kwok-dra's")
}

// TestSince: a condition that stays keeps its time, and one of another entry
// does not count.
func TestSince(t *testing.T) {
	t.Parallel()
	earlier, now := metav1.NewTime(noon), metav1.NewTime(noon.Add(time.Hour))
	claim := allocated("c")
	claim.Status.Devices = []resourcev1.AllocatedDeviceStatus{
		{Driver: "d", Pool: "n", Device: "gpu-0", Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, LastTransitionTime: earlier}}},
		{Driver: "d", Pool: "n", Device: "gpu-1", Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, LastTransitionTime: earlier}}},
	}
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue}
	for name, want := range map[string]metav1.Time{"gpu-0": earlier, "gpu-1": now, "gpu-2": now} {
		require.Equal(t, want, since(claim, deviceID{driver: "d", pool: "n", device: name}, ready, now), name)
	}
	require.Equal(t, now, since(claim, deviceID{driver: "d", pool: "n", device: "gpu-0"}, metav1.Condition{Type: "Other", Status: metav1.ConditionTrue}, now))
}

func TestObjectsOf(t *testing.T) {
	t.Parallel()
	b, a := newPod("b"), newPod("a")
	again := newPod("a")
	again.UID = "another"
	var names []string
	for _, object := range objectsOf([]*corev1.Pod{b, a, again}) {
		names = append(names, object.Name+" "+string(object.UID))
	}
	require.Equal(t, []string{"a another", "a uid-of-a", "b uid-of-b"}, names)
}

package templates

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
)

// driverOf is the driver of the node n.
func driverOf(set *config.Set) *Driver {
	return New(set, claimstest.NewNode("n"), Slices{}, nil)
}

func idsOf(entries []resourcev1.AllocatedDeviceStatus) []facts.DeviceID {
	var ids []facts.DeviceID
	for i := range entries {
		ids = append(ids, facts.EntryID(&entries[i]))
	}
	return ids
}

func TestEntries(t *testing.T) {
	t.Parallel()
	gpu := func(name string) facts.DeviceID { return facts.DeviceID{Driver: "d", Pool: "n", Device: name} }
	for name, test := range map[string]struct {
		spec    string
		results []resourcev1.DeviceRequestAllocationResult
		want    []facts.DeviceID
	}{
		"one":             {"", []resourcev1.DeviceRequestAllocationResult{claimstest.Device("d", "gpu-0")}, []facts.DeviceID{gpu("gpu-0")}},
		"in order":        {"", []resourcev1.DeviceRequestAllocationResult{claimstest.Device("d", "gpu-1"), claimstest.Device("d", "gpu-0")}, []facts.DeviceID{gpu("gpu-1"), gpu("gpu-0")}},
		"twice":           {"", []resourcev1.DeviceRequestAllocationResult{claimstest.Device("d", "gpu-0"), claimstest.Device("d", "gpu-0")}, []facts.DeviceID{gpu("gpu-0")}},
		"foreign":         {"", []resourcev1.DeviceRequestAllocationResult{claimstest.Device("other", "gpu-0")}, nil},
		"foreign and own": {"", []resourcev1.DeviceRequestAllocationResult{claimstest.Device("other", "x"), claimstest.Device("d", "gpu-0")}, []facts.DeviceID{gpu("gpu-0")}},
		"two shares": {
			"",
			[]resourcev1.DeviceRequestAllocationResult{claimstest.Share("s1", claimstest.Device("d", "gpu-0")), claimstest.Share("s2", claimstest.Device("d", "gpu-0"))},
			[]facts.DeviceID{{Driver: "d", Pool: "n", Device: "gpu-0", Share: "s1"}, {Driver: "d", Pool: "n", Device: "gpu-0", Share: "s2"}},
		},
		"None":             {"  claimStatus: {mode: None}\n", []resourcev1.DeviceRequestAllocationResult{claimstest.Device("d", "gpu-0")}, nil},
		"None, with data":  {"  claimStatus: {mode: None, data: {a: b}}\n", []resourcev1.DeviceRequestAllocationResult{claimstest.Device("d", "gpu-0")}, []facts.DeviceID{gpu("gpu-0")}},
		"nothing":          {"", nil, nil},
		"of no known pool": {"  claimStatus: {mode: None}\n", []resourcev1.DeviceRequestAllocationResult{claimstest.Device("other", "gpu-9")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := claimstest.Allocated("c")
			claimstest.Allocate(claim, test.results...)
			want, err := driverOf(configtest.SetOf(t, claimstest.Template("d", test.spec))).Entries(claim, nil)
			require.NoError(t, err)
			require.Equal(t, test.want, idsOf(want.Devices))
			require.False(t, want.NamePods)
		})
	}
}

func TestEntriesFail(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spec   string
		result resourcev1.DeviceRequestAllocationResult
		want   string
	}{
		"no such device": {"", claimstest.Device("d", "gpu-9"), "requested device is not allocatable: gpu-9 in pool n of driver d"},
		"no such field":  {"  claimStatus: {data: {a: '{{ .Device.attributes.x }}'}}\n", claimstest.Device("d", "gpu-0"), "render template of-d for device gpu-0: "},
		"no object":      {"  claimStatus: {data: '{{ .Result.device }}'}\n", claimstest.Device("d", "gpu-0"), "must yield an object"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := claimstest.Allocated("c")
			claimstest.Allocate(claim, test.result)
			_, err := driverOf(configtest.SetOf(t, claimstest.Template("d", test.spec))).Entries(claim, nil)
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
		claim := claimstest.Allocated("c")
		claimstest.Allocate(claim, claimstest.Share("s", claimstest.Device("d", "gpu-2")))
		set := configtest.SetOf(t, claimstest.Template("d", fmt.Sprintf(spec, mode)))
		want, err := driverOf(set).Entries(claim, []*corev1.Pod{claimstest.NewPod("q"), claimstest.NewPod("p")})
		require.NoError(t, err)
		require.True(t, want.NamePods)
		entry := want.Devices[0]
		require.Equal(t, "s", *entry.ShareID)
		require.Len(t, entry.Conditions, conditions)
		require.JSONEq(t, `{"device": "gpu-2", "node": "uid-of-n", "claim": "default/c/uid-of-c", "pods": "p=uid-of-p,q=uid-of-q,"}`, string(entry.Data.Raw))
		require.Equal(t, &resourcev1.NetworkDeviceData{InterfaceName: "eth-gpu-2", IPs: []string{"10.0.0.7/24"}, HardwareAddress: "00:00:5e:00:53:01"}, entry.NetworkData)
	}
}

// TestNoEntry: what yields nothing for a device has no entry, unless it is Ready.
func TestNoEntry(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]int{"Ready": 2, "None": 1} {
		claim := claimstest.Allocated("c")
		claimstest.Allocate(claim, claimstest.Device("d", "gpu-0"), claimstest.Device("d", "gpu-1"))
		set := configtest.SetOf(t, claimstest.Template("d", fmt.Sprintf("  claimStatus: {mode: %s, data: '{{ if eq .Device.name \"gpu-1\" }}a: b{{ end }}'}\n", mode)))
		entries, err := driverOf(set).Entries(claim, nil)
		require.NoError(t, err)
		require.Len(t, entries.Devices, want)
		require.JSONEq(t, `{"a": "b"}`, string(entries.Devices[want-1].Data.Raw))
	}
}

// parameters is opaque configuration that is known by its number.
func parameters(number string, source resourcev1.AllocationConfigSource, driver string, requests ...string) resourcev1.DeviceAllocationConfiguration {
	return resourcev1.DeviceAllocationConfiguration{Source: source, Requests: requests, DeviceConfiguration: resourcev1.DeviceConfiguration{
		Opaque: &resourcev1.OpaqueDeviceConfiguration{Driver: driver, Parameters: runtime.RawExtension{Raw: []byte(number)}},
	}}
}

func TestParametersFor(t *testing.T) {
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
			claim := claimstest.Allocated("c")
			claim.Status.Allocation.Devices.Config = test.configs
			before := claim.DeepCopy()
			result := claimstest.Device("d", "gpu-0")
			result.Request = test.request
			got, err := json.Marshal(ParametersFor(claim, &result))
			require.NoError(t, err)
			require.Equal(t, test.want, string(got))
			require.Equal(t, before, claim, "the claim of the cache is left as it is")
		})
	}
}

func TestObjectsOf(t *testing.T) {
	t.Parallel()
	b, a := claimstest.NewPod("b"), claimstest.NewPod("a")
	again := claimstest.NewPod("a")
	again.UID = "another"
	var names []string
	for _, object := range sortedObjects([]*corev1.Pod{b, a, again}) {
		names = append(names, object.Name+" "+string(object.UID))
	}
	require.Equal(t, []string{"a another", "a uid-of-a", "b uid-of-b"}, names)
}

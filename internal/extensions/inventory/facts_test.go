package inventory

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// gpu is a device with facts, and with some that are its own.
func gpu(name, id string) resourcev1.Device {
	return resourcev1.Device{
		Name: name,
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"uuid":                            {StringValue: &id},
			"example.com/mac":                 {StringValue: &id},
			"host":                            {StringValue: new("name of " + id)},
			"productName":                     {StringValue: new("Fast GPU")},
			"driverVersion":                   {VersionValue: new("1.2.3")},
			"resource.kubernetes.io/numaNode": {IntValue: new(int64(1))},
			"healthy":                         {BoolValue: new(true)},
			"links":                           {IntValues: []int64{1, 2}},
		},
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"d/memory": {Value: resource.MustParse("80Gi")}},
	}
}

func described(node string, devices ...resourcev1.Device) Slice {
	spec := resourcev1.ResourceSliceSpec{NodeName: &node, Devices: devices}
	return Slice{
		Node: node, Driver: "d", Pool: node, Generation: 1, Count: 1,
		Devices: facts.NamesOf(devices), Sharing: SharingOf(&spec), Facts: FactsOf(&spec),
	}
}

// TestFacts: nodes of one kind say the same, and what is of one device alone is left out.
func TestFacts(t *testing.T) {
	t.Parallel()
	plain := resourcev1.Device{Name: "plain"}
	got := fixed(nil, []Slice{described("n-0", gpu("a", "n-0"), plain), described("n-1", gpu("a", "n-1"), plain)}).Take()
	require.Equal(t, got.Items[0].Pools[0].Kind, got.Items[1].Pools[0].Kind)
	require.NotEmpty(t, got.Items[0].Pools[0].Kind)
	require.Len(t, got.Kinds, 1)
	kind := got.Items[0].Pools[0].Kind
	encoded, err := json.Marshal(got.Kinds[kind])
	require.NoError(t, err)
	require.JSONEq(t, `{"id": "`+kind+`", "devices": [{
		"product": "Fast GPU", "memory": "80Gi",
		"attributes": {"productName": "Fast GPU", "driverVersion": "1.2.3", "resource.kubernetes.io/numaNode": "1", "healthy": "true", "links": "1, 2"},
		"capacity": {"d/memory": "80Gi"}
	}, {}]}`, string(encoded))
	again := fixed(nil, []Slice{described("n-0", gpu("a", "n-0"), plain)}).Take()
	require.Equal(t, kind, again.Items[0].Pools[0].Kind, "the id stays")
	require.Equal(t, Facts{}, FactsOf(&resourcev1.ResourceSliceSpec{Devices: []resourcev1.Device{plain}}))
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	device := gpu("a", "GPU-1")
	got := Describe("d", &device, []resourcev1.Device{device})
	require.Equal(t, []string{"GPU-1", "Fast GPU", "80Gi"}, []string{got.UUID, got.Product, got.Memory})
	require.Len(t, got.Attributes, 8)
	plain, err := json.Marshal(Describe("d", &resourcev1.Device{Name: "plain"}, nil))
	require.NoError(t, err)
	require.JSONEq(t, `{}`, string(plain))
}

// TestUUID is what is named so and what no other device of the slice has, and no id of a model.
func TestUUID(t *testing.T) {
	t.Parallel()
	made := func(name string, attributes ...string) resourcev1.Device {
		device := resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}}
		for i := 0; i < len(attributes); i += 2 {
			device.Attributes[resourcev1.QualifiedName(attributes[i])] = resourcev1.DeviceAttribute{StringValue: &attributes[i+1]}
		}
		return device
	}
	for name, test := range map[string]struct {
		devices []resourcev1.Device
		want    string
	}{
		"a model":             {[]resourcev1.Device{made("a", "deviceID", "0x74a1", "deviceId", "0")}, ""},
		"a place":             {[]resourcev1.Device{made("a", "resource.kubernetes.io/pciBusID", "0000:05:00.0", "d/pciAddress", "0000:05:00.0")}, ""},
		"a parent":            {[]resourcev1.Device{made("a", "parentUUID", "GPU-1")}, ""},
		"all have it":         {[]resourcev1.Device{made("a", "uuid", "582807", "SN", "1"), made("b", "uuid", "582807", "SN", "2")}, "1"},
		"all have all":        {[]resourcev1.Device{made("a", "uuid", "1"), made("b", "d/uuid", "1")}, ""},
		"of the driver":       {[]resourcev1.Device{made("a", "d/uuid", "1"), made("b", "d/uuid", "2")}, "1"},
		"of another":          {[]resourcev1.Device{made("a", "e/uuid", "1")}, ""},
		"a card of a network": {[]resourcev1.Device{made("a", "d/mac", "b8:3f"), made("b")}, "b8:3f"},
	} {
		require.Equal(t, test.want, Describe("d", &test.devices[0], test.devices).UUID, name)
	}
}

// TestIdentities: a value that a device of another node has, too, is the UUID of none. A newer generation of a
// pool has the same devices.
func TestIdentities(t *testing.T) {
	t.Parallel()
	of := func(serial string) []resourcev1.Device {
		return []resourcev1.Device{{Name: "a", Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"uuid": {StringValue: new("582807")}, "d/SN": {StringValue: &serial}}}}
	}
	known, one := Identities{}, of("1")
	known.Add("d", "n0", one)
	known.Add("d", "n0", one)
	require.Equal(t, "582807", known.Describe("d", &one[0]).UUID)
	known.Add("d", "n1", of("2"))
	require.Equal(t, "1", known.Describe("d", &one[0]).UUID)
	known.Add("e", "n2", of("1"))
	require.Equal(t, "1", known.Describe("d", &one[0]).UUID, "another driver")
	known.Add("d", "n2", of("1"))
	require.Empty(t, known.Describe("d", &one[0]).UUID)
}

// TestProduct is the name by which people know a device, and not what it is for.
func TestProduct(t *testing.T) {
	t.Parallel()
	require.Equal(t, "ConnectX-7", newDescription("dra.net", map[string]string{"dra.net/pciDevice": "MT2910 Family [ConnectX-7]", "dra.net/type": "device"}, nil).Product)
	require.Equal(t, "E810-C", newDescription("d", map[string]string{"pciDevice": "E810-C"}, nil).Product)
	require.Empty(t, newDescription("d", map[string]string{"type": "gpu", "d/type": "device"}, nil).Product)
}

// TestParts: what is a part of what, by the counters that they take.
func TestParts(t *testing.T) {
	t.Parallel()
	sets := []resourcev1.CounterSet{counterSet("s", "memory=80 slice=1"), counterSet("t", "memory=80")}
	for name, test := range map[string]struct {
		devices []resourcev1.Device
		want    []string
	}{
		"whole":              {[]resourcev1.Device{drawing("g-half", "s", "memory=40"), drawing("g", "s", "memory=80 slice=1")}, []string{"g", ""}},
		"a part as large":    {[]resourcev1.Device{drawing("g-all", "s", "memory=80"), drawing("g", "s", "memory=80"), drawing("g-half", "s", "memory=40")}, []string{"g", "", "g"}},
		"halves of nothing":  {[]resourcev1.Device{drawing("a", "s", "memory=40"), drawing("b", "s", "memory=40")}, []string{"", ""}},
		"two sets":           {[]resourcev1.Device{drawing("g", "s", "memory=80"), drawing("h", "t", "memory=80"), drawing("h-0", "t", "memory=8")}, []string{"", "", "h"}},
		"nothing to share":   {[]resourcev1.Device{{Name: "g"}}, []string{""}},
		"a set there is not": {[]resourcev1.Device{drawing("a", "u", "memory=40"), drawing("b", "u", "memory=80")}, []string{"", ""}},
	} {
		got := fixed(nil, published(sets, test.devices...)).Take()
		pool := got.Items[0].Pools[0]
		var wholes []string
		for i := range pool.Devices {
			wholes = append(wholes, got.Kinds[pool.Kind].Whole(i))
		}
		require.Equal(t, test.want, wholes, name)
	}
}

func TestNamesOfNodes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"n-1": true, "rack/n-1": true, "n-1.example.com": true, "n-10": false, "can-1": false, "n": false, "": false} {
		require.Equal(t, want, mentionsNode(text, "n-1"), text)
	}
	require.False(t, mentionsNode("text", ""))
}

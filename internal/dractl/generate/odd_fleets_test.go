package generate

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	betaone "k8s.io/api/resource/v1beta1"
	betatwo "k8s.io/api/resource/v1beta2"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	resourcev1beta1 "k8s.io/dynamic-resource-allocation/api/v1beta1"
	resourcev1beta2 "k8s.io/dynamic-resource-allocation/api/v1beta2"

	"github.com/kwok-dra/kwok-dra/internal/dractl/check"
	"github.com/kwok-dra/kwok-dra/internal/dractl/documents"
	"github.com/kwok-dra/kwok-dra/internal/dractl/preview"
)

// oddFleet has all that a cluster may have besides what its drivers meant.
type oddFleet struct {
	*rand.Rand
	nodes  []*corev1.Node
	slices []*resourcev1.ResourceSlice
}

var oddDrivers = []string{"gpu.example.com", "GPU.example.com", "gpu.example.com-0", "nic.example.com"}

func newOddFleet(seed uint64) *oddFleet {
	f := &oddFleet{Rand: rand.New(rand.NewPCG(seed, 1))}
	for i := range 1 + f.IntN(5) {
		node := &corev1.Node{}
		node.Name = fmt.Sprintf("node-%d", i)
		node.Labels = map[string]string{"rack": fmt.Sprintf("rack-%d", i%2), copyPrefix + "gpu.example.com": "0"}
		f.nodes = append(f.nodes, node)
	}
	numbered(f.nodes)
	for _, driver := range oddDrivers {
		for i := range len(f.nodes) + 1 { // one more than there are
			for number := range f.IntN(3) {
				f.addPool(driver, fmt.Sprintf("node-%d", i), number)
			}
		}
		if f.rarely() {
			f.addPool(driver, "", 0)
		}
	}
	return f
}

func (f *oddFleet) rarely() bool     { return f.IntN(6) == 0 }
func (f *oddFleet) veryRarely() bool { return f.IntN(36) == 0 }

// addPool adds the slices of a pool, of which some may be missing, old or empty.
func (f *oddFleet) addPool(driver, node string, number int) {
	name := []string{node, node + "-more"}[number]
	if node == "" || f.rarely() {
		name = []string{"one", "two"}[f.IntN(2)] // which others may have too
	}
	count := 1 + f.IntN(3)
	generation := int64(2 + f.IntN(3))
	spec := resourcev1.ResourceSliceSpec{Driver: driver, Pool: resourcev1.ResourcePool{Name: name, Generation: generation, ResourceSliceCount: int64(count)}}
	f.setNodes(&spec, node)
	for i := range count {
		if f.veryRarely() {
			continue
		}
		slice := &resourcev1.ResourceSlice{Spec: *spec.DeepCopy()}
		slice.Name = fmt.Sprintf("slice%04d", len(f.slices))
		if f.rarely() {
			slice.Spec.Pool.Generation--
		}
		if f.veryRarely() {
			f.setNodes(&slice.Spec, "")
		}
		for j := range f.IntN(4) {
			slice.Spec.Devices = append(slice.Spec.Devices, f.device(fmt.Sprintf("dev-%d-%d", i, j), slice.Spec.PerDeviceNodeSelection != nil))
		}
		f.slices = append(f.slices, slice)
	}
}

func (f *oddFleet) setNodes(spec *resourcev1.ResourceSliceSpec, node string) {
	spec.NodeName, spec.NodeSelector, spec.AllNodes, spec.PerDeviceNodeSelection = nil, nil, nil, nil
	switch kind := f.IntN(3); {
	case node != "":
		spec.NodeName = &node
	case kind == 0:
		spec.AllNodes = new(true)
	case kind == 1:
		spec.NodeSelector = newLabelSelector("rack", "rack-1")
	default:
		spec.PerDeviceNodeSelection = new(true)
	}
}

func (f *oddFleet) device(name string, placed bool) resourcev1.Device {
	device := resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}}
	if placed {
		switch f.IntN(3) {
		case 0:
			device.NodeName = new("node-0")
		case 1:
			device.AllNodes = new(true)
		default:
			device.NodeSelector = newLabelSelector("rack", "rack-0")
		}
	}
	texts := []string{"A", "{{ braces }}", "", "node-0", "two\nlines", "\x00", "'\"`", "naïve", "1.0.0"}
	device.Attributes["model"] = resourcev1.DeviceAttribute{StringValue: new(texts[f.IntN(len(texts))])}
	device.Attributes["index"] = resourcev1.DeviceAttribute{IntValue: new(f.Int64N(4))}
	device.Attributes["version"] = resourcev1.DeviceAttribute{VersionValue: new(fmt.Sprintf("1.%d.0", f.IntN(3)))}
	if f.rarely() {
		device.Attributes["gpu.example.com/model"] = resourcev1.DeviceAttribute{BoolValue: new(true)}
	}
	if f.rarely() {
		device.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: *resource.NewQuantity(f.Int64N(1<<40), resource.BinarySI)}}
	}
	if f.rarely() {
		device.Taints = []resourcev1.DeviceTaint{{Key: "example.com/broken", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
	}
	if f.veryRarely() {
		device.Attributes["model"] = resourcev1.DeviceAttribute{StringValue: new(strings.Repeat("x", 65))} // no template yields it
	}
	return device
}

// inAllVersions has some of the slices in older versions.
func (f *oddFleet) inAllVersions(t *testing.T) []runtime.Object {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{resourcev1.AddToScheme, resourcev1beta1.AddToScheme, resourcev1beta2.AddToScheme} {
		require.NoError(t, add(scheme))
	}
	all := make([]runtime.Object, len(f.slices))
	for i, slice := range f.slices {
		all[i] = []runtime.Object{slice.DeepCopy(), &betaone.ResourceSlice{}, &betatwo.ResourceSlice{}}[f.IntN(3)]
		require.NoError(t, scheme.Convert(slice, all[i], nil))
		kinds, _, err := scheme.ObjectKinds(all[i])
		require.NoError(t, err)
		all[i].GetObjectKind().SetGroupVersionKind(kinds[0])
	}
	return all
}

// encodedPools are the devices of pools in their order, with what their slices say of
// nodes. Of each pool the newest generation counts; older has the others.
func encodedPools(t *testing.T, all []*resourcev1.ResourceSlice) (pools map[string]string, of map[string][]string, older []string) {
	t.Helper()
	newest := map[string]int64{}
	key := func(slice *resourcev1.ResourceSlice) string { return slice.Spec.Driver + "/" + slice.Spec.Pool.Name }
	for _, slice := range all {
		newest[key(slice)] = max(newest[key(slice)], slice.Spec.Pool.Generation)
	}
	pools, of = map[string]string{}, map[string][]string{}
	all = slices.SortedFunc(slices.Values(all), func(a, b *resourcev1.ResourceSlice) int { return strings.Compare(a.Name, b.Name) })
	for _, slice := range all {
		if slice.Spec.Pool.Generation < newest[key(slice)] {
			older = append(older, slice.Name)
			continue
		}
		of[key(slice)] = append(of[key(slice)], slice.Name)
		bare := slice.Spec
		bare.Pool, bare.Devices = resourcev1.ResourcePool{}, nil
		for i := range slice.Spec.Devices {
			device := *slice.Spec.Devices[i].DeepCopy()
			device.Taints = withoutTimes(device.Taints)
			text, err := json.Marshal([]any{bare, device})
			require.NoError(t, err)
			pools[key(slice)] += string(text) + "\n"
		}
	}
	return pools, of, older
}

// slicesOfCopy are the slices that the templates of a copy make on its nodes.
func slicesOfCopy(t *testing.T, printed string, nodes []*corev1.Node) []*resourcev1.ResourceSlice {
	t.Helper()
	result := check.Documents(documents.Split("copy", []byte(printed)))
	require.Empty(t, result.Problems)
	release, err := preview.EverythingOn("1.37")
	require.NoError(t, err)
	previewed, err := preview.New(t.Context(), release, preview.Cluster{Config: result.Set.Published(), Nodes: nodes})
	require.NoError(t, err)
	require.Empty(t, previewed.Problems)
	return previewed.Create
}

// requireCopied holds the slices of a copy against those of the fleet: the account names what
// differs. It returns how many slices are left out.
func (f *oddFleet) requireCopied(t *testing.T, copied []*resourcev1.ResourceSlice, account string) (left int) {
	t.Helper()
	want, of, older := encodedPools(t, f.slices)
	got, _, _ := encodedPools(t, copied)
	isEmpty := map[string]bool{}
	for _, slice := range f.slices {
		isEmpty[slice.Name] = len(slice.Spec.Devices) == 0
	}
	for pool, slices := range of {
		devices, isCopied := got[pool]
		if !isCopied {
			require.Contains(t, account, pool, "neither copied nor left out")
			left += len(slices)
			continue
		}
		require.Equal(t, want[pool], devices, pool)
		for _, name := range slices {
			if isEmpty[name] {
				require.Contains(t, account, name)
				left++
			}
		}
	}
	for pool := range got {
		require.Contains(t, of, pool)
	}
	for _, name := range older {
		require.Contains(t, account, name)
	}
	return left + len(older)
}

var comments = regexp.MustCompile(`(?m)^# .*\n`)

// FuzzCopyOfOddFleets: what comes out is what went in, without what the copy says that
// it leaves out. Nothing is dropped without a word, and nothing stops the rest.
func FuzzCopyOfOddFleets(f *testing.F) {
	for seed := range uint64(30) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		fleet := newOddFleet(seed)
		var in strings.Builder
		for _, slice := range fleet.inAllVersions(t) {
			text, err := json.Marshal(slice)
			require.NoError(t, err)
			in.Write(text)
		}
		printed, told, err := runCopy(t, fleet.nodes, in.String())
		account := told + strings.Join(comments.FindAllString(printed, -1), "")
		var again []*resourcev1.ResourceSlice
		var copied []*corev1.Node
		if err != nil {
			require.True(t, len(fleet.slices) == 0 || strings.Contains(err.Error(), "no ResourceSlice can be copied"), err)
		} else {
			copied = nodesIn(t, printed, fleet.nodes)
			again = slicesOfCopy(t, printed, copied)
		}
		left := fleet.requireCopied(t, again, account)
		for _, node := range fleet.nodes {
			isCopied := slices.ContainsFunc(copied, func(other *corev1.Node) bool { return other.Name == node.Name })
			require.True(t, isCopied || err != nil || strings.Contains(account, node.Name), node.Name)
		}
		if left > 0 {
			require.Contains(t, told, fmt.Sprintf("and %d of %d ResourceSlices\n", len(fleet.slices)-left, len(fleet.slices)))
		}
	})
}

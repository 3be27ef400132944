package profiles

import (
	"fmt"
	"maps"
	"slices"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// requirePublished waits until the node has all devices, as the templates say.
// Where the server keeps less of them, the test is skipped, or fails if the
// release should keep it.
func (p *profile) requirePublished(node string) {
	p.Helper()
	var dropped string
	p.Eventually(harness.Patience, func() string {
		if dropped = p.Messages("", node, "FieldsDropped"); dropped != "" {
			return ""
		}
		return p.missingDevices(node)
	})
	if dropped == "" && !p.ofChart() {
		dropped = p.lostFields(node)
	}
	if dropped != "" {
		p.skipBefore(dropped)
	}
}

// skipBefore skips the test on releases that cannot have the profile, and fails
// it on others.
func (p *profile) skipBefore(reason string) {
	p.Helper()
	p.Needs(max(36, p.since), reason)
	p.Fatal(reason)
}

// missingDevices says what is missing for the node to have complete pools, of
// each driver with all devices of the profile.
func (p *profile) missingDevices(node string) string {
	have := map[string]int{}
	for driver, pools := range p.pools(node) {
		for _, pool := range pools {
			count := 0
			for _, slice := range pool {
				count += len(slice.Spec.Devices)
			}
			have[driver] += count
			if missing := harness.CompletePool(pool, count); missing != "" {
				return fmt.Sprintf("node %s, driver %s: %s", node, driver, missing)
			}
		}
	}
	want := p.devices
	if want == nil {
		want = p.deviceCounts()
	}
	if !maps.Equal(have, want) {
		return fmt.Sprintf("node %s has devices %v, want %v", node, have, want)
	}
	return ""
}

// pools are the slices of a profile's drivers that are for the node, by driver
// and name of the pool.
func (p *profile) pools(node string) map[string]map[string][]resourcev1.ResourceSlice {
	p.Helper()
	pools := map[string]map[string][]resourcev1.ResourceSlice{}
	add := func(slice resourcev1.ResourceSlice) {
		if pools[slice.Spec.Driver] == nil {
			pools[slice.Spec.Driver] = map[string][]resourcev1.ResourceSlice{}
		}
		pool := pools[slice.Spec.Driver]
		pool[slice.Spec.Pool.Name] = append(pool[slice.Spec.Pool.Name], slice)
	}
	for _, slice := range p.SlicesOf(node) {
		add(slice)
	}
	for _, template := range p.templates {
		if template.Spec.SharedWith == nil {
			continue
		}
		for _, slice := range p.SlicesBy(template.Spec.Driver) {
			if slice.Spec.Pool.Name == template.Name {
				add(slice)
			}
		}
	}
	return pools
}

// lostFields says of which device the server has not kept everything.
func (p *profile) lostFields(node string) string {
	p.Helper()
	published := p.published(node)
	for _, pool := range p.wantedPools(node) {
		for _, want := range pool.Devices {
			if have := published[pool.Driver+"/"+pool.Name+"/"+want.Name]; !apiequality.Semantic.DeepEqual(have, want) {
				return fmt.Sprintf("the server has not kept all of device %s: %+v, want %+v", want.Name, have, want)
			}
		}
	}
	return ""
}

// published are the devices of a node by driver, pool and name.
func (p *profile) published(node string) map[string]resourcev1.Device {
	p.Helper()
	published := map[string]resourcev1.Device{}
	for driver, pools := range p.pools(node) {
		for _, slice := range slices.Concat(slices.Collect(maps.Values(pools))...) {
			for _, device := range slice.Spec.Devices {
				for i := range device.Taints {
					device.Taints[i].TimeAdded = nil // by the server
				}
				published[driver+"/"+slice.Spec.Pool.Name+"/"+device.Name] = device
			}
		}
	}
	return published
}

// wantedPools are the pools that the sidecar makes for the node.
func (p *profile) wantedPools(name string) []devices.Pool {
	p.Helper()
	node, err := p.Client.CoreV1().Nodes().Get(p.Context(), name, metav1.GetOptions{})
	require.NoError(p, err)
	var all []devices.Pool
	for _, templates := range devices.SelectForNode(p.set.Templates, node).ByDriver {
		pools, refusals, err := devices.PoolsForNode(templates, lifecycle.NewObject(node), nil)
		require.NoError(p, err)
		require.Empty(p, refusals)
		all = append(all, pools...)
	}
	for _, template := range p.set.Shared() {
		pool, err := template.NewSharedPool()
		require.NoError(p, err)
		all = append(all, *pool)
	}
	return all
}

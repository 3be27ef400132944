package inventory

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
)

// covered is an allocation that slices would have if anybody published it.
func covered(node, pool, device string, claim Claim) Allocation {
	a := allocation(pool, device, claim)
	a.Node, a.Covered = node, true
	return a
}

// goneIn names the devices that are gone, as node/pool/device.
func goneIn(taken *Inventory) []string {
	names := []string{}
	for _, d := range taken.Gone {
		names = append(names, d.Node+"/"+d.Pool+"/"+d.Name)
	}
	return names
}

// TestGoneDevices: what a claim has and nobody publishes is shown with the claim, and counted
// beside the published devices.
func TestGoneDevices(t *testing.T) {
	t.Parallel()
	has, other := Claim{Namespace: "x", Name: "c", Pods: []string{"p"}}, Claim{Namespace: "x", Name: "d"}
	old := slice("n1", "gpu-0 gpu-1")
	now := slice("n1", "gpu-0")
	now.Generation = 2
	incomplete := slice("n2", "gpu-0")
	incomplete.Count = 2
	retired := covered("n3", "n3", "gpu-0", has)
	retired.Driver = "retired"
	source := fixed([]string{"n1", "n2", "n3"}, []Slice{old, now, incomplete},
		covered("n1", "n1", "gpu-0", other), covered("", "n1", "gpu-1", other), covered("", "n1", "gpu-1", has),
		covered("n2", "n2", "gpu-7", has), allocation("elsewhere", "gpu-0", has), retired)
	source.TaintRules = func() ([]TaintRule, string) { return []TaintRule{ruleFor("r", "d", "", "gpu-1")}, "" }
	taken := source.Take()
	require.Equal(t, []string{"n1/n1/gpu-1", "n3/n3/gpu-0"}, goneIn(taken),
		"a slice that is missing may have a device, and one that the source does not read")
	require.Equal(t, []Claim{has, other}, taken.Gone[0].Claims)
	require.Equal(t, "r", taken.Gone[0].Taints[0].Rule)
	require.Equal(t, []Driver{
		{Name: "d", Pools: 2, IncompletePools: 1, Usage: Usage{1, 2}, States: Counts{Free: 1, Allocated: 1}, Gone: 1},
		{Name: "retired", Gone: 1},
	}, taken.Drivers)
	encoded, err := json.Marshal(taken.Gone[1])
	require.NoError(t, err)
	require.JSONEq(t, `{"node": "n3", "driver": "retired", "pool": "n3", "name": "gpu-0", "state": "gone",
		"claims": [{"namespace": "x", "name": "c", "pods": ["p"], "prepared": false}]}`, string(encoded))
	require.NoError(t, testutil.CollectAndCompare(NewCollector(source), strings.NewReader(`
# HELP kwok_dra_gone_devices Devices that claims have and no slice publishes any more, by driver. No state counts them.
# TYPE kwok_dra_gone_devices gauge
kwok_dra_gone_devices{driver="d"} 1
kwok_dra_gone_devices{driver="retired"} 1
`), "kwok_dra_gone_devices"))
}

// ruleFor is a rule for what has these names; an empty name selects all.
func ruleFor(name, driver, pool, device string) TaintRule {
	selector := &resourcev1.DeviceTaintSelector{}
	for of, wanted := range map[**string]string{&selector.Driver: driver, &selector.Pool: pool, &selector.Device: device} {
		if wanted != "" {
			*of = &wanted
		}
	}
	rule := &resourcev1.DeviceTaintRule{Spec: resourcev1.DeviceTaintRuleSpec{
		DeviceSelector: selector, Taint: resourcev1.DeviceTaint{Key: "k", Effect: resourcev1.DeviceTaintEffectNoExecute},
	}}
	rule.Name = name
	return TaintRuleOf(rule)
}

// taintedBy are the devices of an inventory with their states and the rules behind their taints.
func taintedBy(taken *Inventory) (all []string) {
	for _, item := range taken.Items {
		for _, device := range item.Pools[0].Devices {
			text := item.Node + "/" + device.Name + ":" + device.State.String()
			var rules []string
			for _, taint := range device.Taints {
				rules = append(rules, taint.Rule)
			}
			if rules != nil {
				text += "[" + strings.Join(rules, " ") + "]"
			}
			all = append(all, text)
		}
	}
	return all
}

// TestTaintRules: a device has the taints of its slice and those of the rules that select it.
func TestTaintRules(t *testing.T) {
	t.Parallel()
	broken := slice("n1", "gpu-0 gpu-1")
	broken.Taints = map[string][]Taint{"gpu-0": {taint(resourcev1.DeviceTaintEffectNoSchedule)}}
	without := ruleFor("without", "", "", "")
	without.Selector = nil
	harmless := ruleFor("harmless", "", "", "")
	harmless.Taint.Effect = resourcev1.DeviceTaintEffectNone
	for name, test := range map[string]struct {
		rules []TaintRule
		want  string
	}{
		"no rule":                {nil, "n1/gpu-0:tainted[] n1/gpu-1:free n2/gpu-0:free"},
		"all devices":            {[]TaintRule{ruleFor("all", "", "", "")}, "n1/gpu-0:tainted[ all] n1/gpu-1:tainted[all] n2/gpu-0:tainted[all]"},
		"a driver":               {[]TaintRule{ruleFor("d", "d", "", ""), ruleFor("e", "e", "", "")}, "n1/gpu-0:tainted[ d] n1/gpu-1:tainted[d] n2/gpu-0:tainted[d]"},
		"a pool":                 {[]TaintRule{ruleFor("p", "d", "n1", "")}, "n1/gpu-0:tainted[ p] n1/gpu-1:tainted[p] n2/gpu-0:free"},
		"a device of any pool":   {[]TaintRule{ruleFor("g", "", "", "gpu-0")}, "n1/gpu-0:tainted[ g] n1/gpu-1:free n2/gpu-0:tainted[g]"},
		"two rules":              {[]TaintRule{ruleFor("a", "", "n2", ""), ruleFor("b", "d", "n2", "gpu-0")}, "n1/gpu-0:tainted[] n1/gpu-1:free n2/gpu-0:tainted[a b]"},
		"no selector, no effect": {[]TaintRule{without, harmless}, "n1/gpu-0:tainted[ harmless] n1/gpu-1:free[harmless] n2/gpu-0:free[harmless]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := fixed(nil, []Slice{broken, slice("n2", "gpu-0")})
			source.TaintRules = func() ([]TaintRule, string) { return test.rules, "hidden" }
			taken := source.Take()
			require.Equal(t, test.want, strings.Join(taintedBy(taken), " "))
			require.Equal(t, "hidden", taken.Unseen)
			require.Len(t, broken.Taints["gpu-0"], 1, "the slice keeps its own")
		})
	}
}

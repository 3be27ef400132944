package devices

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
)

// part is a template of a document that was created at a time.
func part(t *testing.T, document, name string, created int64, devices ...string) *Template {
	t.Helper()
	compiled := compile(t, document+"."+name, namedDevices(devices...))
	compiled.Origin = Origin{Document: "Config " + document, Part: "pool " + name, Created: time.Unix(created, 0)}
	return compiled
}

// TestPoolsForNode: of documents that clash the later one is left out, whole, and
// the others stand.
func TestPoolsForNode(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		templates []*Template
		want      []string
		refused   []string
	}{
		"nothing clashes": {[]*Template{part(t, "a", "p", 1, "x"), part(t, "a", "q", 1, "w"), part(t, "b", "p", 2, "z")}, []string{"x", "w", "z"}, nil},
		"the newer": {
			[]*Template{part(t, "a", "p", 2, "x", "w"), part(t, "b", "p", 1, "w", "x", "z")},
			[]string{"w", "x", "z"},
			[]string{"pool p of Config a and pool p of Config b both have the devices w, x in pool n of driver d: rename one; Config a is left out on this node"},
		},
		"with itself": {
			[]*Template{part(t, "a", "p", 1, "x"), part(t, "a", "q", 1, "x"), part(t, "b", "p", 2, "z")},
			[]string{"z"},
			[]string{"pool p of Config a and pool q of Config a both have the device x in pool n of driver d: rename one; Config a is left out on this node"},
		},
		"whole": {
			[]*Template{part(t, "a", "p", 1, "x"), part(t, "b", "p", 2, "w"), part(t, "b", "q", 2, "x")},
			[]string{"x"},
			[]string{"pool p of Config a and pool q of Config b both have the device x in pool n of driver d: rename one; Config b is left out on this node"},
		},
		"what clashes only with what is left out": {
			[]*Template{part(t, "a", "p", 3, "w"), part(t, "b", "p", 2, "w", "x"), part(t, "c", "p", 1, "x")},
			[]string{"w", "x"},
			[]string{"pool p of Config b and pool p of Config c both have the device x in pool n of driver d: rename one; Config b is left out on this node"},
		},
		"a file's template is older than any": {
			[]*Template{part(t, "a", "p", 1, "x"), compile(t, "b", namedDevices("x"))},
			[]string{"x"},
			[]string{"pool p of Config a and template b both have the device x in pool n of driver d: rename one, or set poolName or priority; Config a is left out on this node"},
		},
		"of one age, the first name": {
			[]*Template{compile(t, "a", namedDevices("x")), compile(t, "b", namedDevices("x", "w")), compile(t, "c", namedDevices("w"))},
			[]string{"x", "w"},
			[]string{"template a and template b both have the device x in pool n of driver d: rename one, or set poolName or priority; template b is left out on this node"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pools, refusals, err := PoolsForNode(test.templates, lifecycle.NewObject(newNode("n", nil)), nil)
			require.NoError(t, err)
			require.Len(t, pools, 1)
			require.Equal(t, test.want, deviceNames(pools[0].Devices))
			var refused []string
			left := 0
			for _, refusal := range refusals {
				refused = append(refused, refusal.Err.Error())
				left += len(refusal.Templates)
			}
			require.Equal(t, test.refused, refused)
			require.Len(t, pools[0].Templates, len(test.templates)-left)
		})
	}
}

// TestPoolsForNodeLeavesOtherPoolsAlone: a document that clashes in one pool has none
// of its devices in another either.
func TestPoolsForNodeLeavesOtherPoolsAlone(t *testing.T) {
	t.Parallel()
	elsewhere := compile(t, "b.q", namedDevices("x")+"poolName: other-{{ .Node.metadata.name }}")
	elsewhere.Origin = Origin{Document: "Config b", Created: time.Unix(2, 0)}
	pools, refusals, err := PoolsForNode([]*Template{part(t, "a", "p", 1, "x"), part(t, "b", "p", 2, "x"), elsewhere}, lifecycle.NewObject(newNode("n", nil)), nil)
	require.NoError(t, err)
	require.Len(t, refusals, 1)
	require.Len(t, pools, 1)
	require.Equal(t, "n", pools[0].Name)
}

func TestSlicesThatAreTooLarge(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]string{
		"driver: d\ndevices: [{name: x, count: 129}]\nslices: [{devices: [x]}]":                                                                         "spec.slices[0].devices: Invalid value: 129: must be at most 128 devices: make more slices",
		"driver: d\ndevices: [{name: x, count: 65, taints: [{key: a, effect: None}]}, {name: w, count: 128}]\nslices: [{devices: [w]}, {devices: [x]}]": "spec.slices[1].devices: Invalid value: 65: must be at most 64 devices, since some have taints, lists or consumesCounters: make more slices",
		"driver: d\ndevices: [{name: x, count: 128}]\nslices: [{devices: [x]}]":                                                                         "",
	} {
		_, errs := Compile(source(t, "t", spec))
		got := ""
		if len(errs) > 0 {
			got = strings.TrimSpace(errs.ToAggregate().Error())
		}
		require.Equal(t, want, got)
	}
}

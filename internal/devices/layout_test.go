package devices

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// shape tells of each slice the number of counter sets and devices.
func shape(made []Slice) string {
	var words []string
	for _, slice := range made {
		words = append(words, fmt.Sprintf("%d+%d", len(slice.CounterSets), len(slice.Devices)))
	}
	return strings.Join(words, " ")
}

// gpus is a template of GPUs that have that many counters and partitions each.
func gpus(count, counters, partitions int) string {
	var sets, consumes []string
	for i := range counters {
		sets = append(sets, fmt.Sprintf("c%d: 8", i))
		consumes = append(consumes, fmt.Sprintf("c%d: 1", i))
	}
	return fmt.Sprintf("driver: d\ndevices:\n- {name: gpu, count: %d, counters: {%s}, partitions: [{name: p, count: %d, consumes: {%s}}]}\n",
		count, strings.Join(sets, ", "), partitions, strings.Join(consumes, ", "))
}

func TestLayout(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ spec, apart, with string }{
		"no counters":       {"driver: d\ndevices: [{name: a, count: 130}]", "0+128 0+2", "0+128 0+2"},
		"lists":             {"driver: d\ndevices: [{name: a, count: 65, attributes: {l: [u, v]}}]", "0+64 0+1", "0+64 0+1"},
		"two GPUs":          {gpus(2, 4, 3), "2+0 0+8", "2+8"},
		"8 sets":            {gpus(8, 4, 6), "8+0 0+56", "8+56"},
		"9 sets":            {gpus(9, 2, 6), "8+0 1+0 0+63", "9+63"},
		"64 with counters":  {gpus(10, 2, 7), "8+0 2+0 0+64 0+16", "8+64 2+16"},
		"32 counters":       {gpus(3, 15, 2), "3+0 0+9", "2+6 1+3"},
		"consumed 1024":     {gpus(1, 32, 31), "1+0 0+32", "1+32"},
		"4096":              {"driver: d\ndevices: [{name: a, count: 4096}]", strings.TrimSpace(strings.Repeat("0+128 ", 32)), strings.TrimSpace(strings.Repeat("0+128 ", 32))},
		"explicit":          {"driver: d\ndevices: [{name: a, count: 4}, {name: b}]\nslices: [{devices: [b, a-3]}, {devices: [a-0]}, {devices: [a-1, a-2]}]", "0+2 0+1 0+2", "0+2 0+1 0+2"},
		"explicit counters": {gpus(3, 4, 1) + "slices: [{devices: [gpu-0, gpu-0-p-0]}, {devices: [gpu-1, gpu-1-p-0, gpu-2, gpu-2-p-0]}]", "3+0 0+2 0+4", "1+2 2+4"},
		"explicit by group": {gpus(2, 4, 1) + "- {name: nic}\nslices: [{devices: [nic]}, {devices: [gpu]}]", "2+0 0+1 0+4", "0+1 2+4"},
		"two sets of one":   {"driver: d\nsharedCounters: [{name: a, counters: {m: {value: 1}}}, {name: b, counters: {m: {value: 1}}}]\ndevices:\n- {name: x, consumesCounters: [{counterSet: a, counters: {m: {value: 1}}}]}\n- {name: w, consumesCounters: [{counterSet: b, counters: {m: {value: 1}}}]}\n- {name: z, consumesCounters: [{counterSet: a, counters: {m: {value: 1}}}, {counterSet: b, counters: {m: {value: 1}}}]}", "2+0 0+3", "2+3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := &render(t, newNode("n", nil), compile(t, "t", test.spec))[0]
			require.Equal(t, test.apart, shape(divide(t, pool, CountersApart)))
			together := divide(t, pool, CountersWithDevices)
			require.Equal(t, test.with, shape(together))
			requireOwnCounters(t, together)
		})
	}
}

// requireOwnCounters: on Kubernetes 1.34 a device consumes from its own slice.
func requireOwnCounters(t *testing.T, made []Slice) {
	t.Helper()
	for _, slice := range made {
		sets := map[string]bool{}
		for _, set := range slice.CounterSets {
			sets[set.Name] = true
		}
		for _, device := range slice.Devices {
			for _, consumption := range device.ConsumesCounters {
				require.True(t, sets[consumption.CounterSet], "%s of %s", consumption.CounterSet, device.Name)
			}
		}
	}
}

func TestLayoutRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spec   string
		layout Layout
		want   string
	}{
		"explicit and too long": {
			"driver: d\ndevices: [{name: a, count: 70, attributes: {l: ['{{ .Index }}']}}]\nslices: [{devices: [a]}]", CountersApart,
			"slices[0] of pool n has 70 devices, at most 64 are possible: divide it",
		},
		"a GPU too large for 1.34": {
			gpus(1, 2, 64), CountersWithDevices,
			"wants the 65 devices from gpu-0 on in one slice with the counter sets that they consume from, 2 counters, consumed 130 times; it takes 64 devices, 32 counters, consumed 1024 times",
		},
		"consumed too often for 1.34":    {gpus(1, 32, 32), CountersWithDevices, "consumed 1056 times"},
		"explicit and too long for 1.34": {gpus(3, 15, 1) + "slices: [{devices: [gpu]}]", CountersWithDevices, "45 counters"},
		"a GPU in two slices on 1.34": {
			gpus(1, 2, 2) + "slices: [{devices: [gpu-0]}, {devices: [gpu-0-p-0, gpu-0-p-1]}]", CountersWithDevices,
			"wants all devices that consume from the counter set gpu-0-counters in one slice: change spec.slices",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := &render(t, newNode("n", nil), compile(t, "t", test.spec))[0]
			_, err := pool.Slices(test.layout)
			require.ErrorContains(t, err, test.want)
		})
	}
}

// TestSplitOfSeveralTemplates: devices of which no template says in which slice
// they are come last.
func TestSplitOfSeveralTemplates(t *testing.T) {
	t.Parallel()
	a := compile(t, "a", "driver: d\ndevices: [{name: x, count: 3}]")
	b := compile(t, "b", "driver: d\ndevices: [{name: w, count: 2}]\nslices: [{devices: [w-1]}, {devices: [w-0]}]")
	made := divide(t, &render(t, newNode("n", nil), a, b)[0], CountersApart)
	require.Equal(t, "0+1 0+1 0+3", shape(made))
	require.Equal(t, "w-1", made[0].Devices[0].Name)
}

func TestSplitRefuses(t *testing.T) {
	t.Parallel()
	const three = "driver: d\ndevices: [{name: a, count: 3}]\n"
	for slices, want := range map[string]string{
		"[{devices: [a, a-1]}]":              `spec.slices[0].devices[1]: Duplicate value: "a-1": spec.slices[0].devices[0] gives that name already; rename one`,
		"[{devices: [a-0]}, {devices: [b]}]": `spec.slices[1].devices[0]: Invalid value: "b": there is no device or group of that name in the template`,
		"[{devices: [a-1]}]":                 `spec.slices: Required value: every device must be in a slice, and a-0, a-2 is in none; add it, or leave slices out`,
	} {
		_, errs := Compile(source(t, "t", three+"slices: "+slices))
		require.Len(t, errs, 1, slices)
		require.EqualError(t, errs[0], want)
	}
}

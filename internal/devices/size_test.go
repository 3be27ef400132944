package devices

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSizeOfATemplate has the sum of what a template makes refused before any of it is made.
// It is not parallel: nothing else may allocate meanwhile.
func TestSizeOfATemplate(t *testing.T) {
	groups := func(format string, number int) string {
		var all strings.Builder
		for i := range number {
			fmt.Fprintf(&all, format+"\n", i)
		}
		return all.String()
	}
	const oneDevice = "driver: d\ndevices:\n- {name: one}\n"
	tooManyDevices := func(number int) string {
		return fmt.Sprintf("spec.devices: Invalid value: %d: a template may make at most 10000 devices, with those of partitions: lower count, or make several templates", number)
	}
	for name, test := range map[string]struct{ spec, want string }{
		"groups":     {oneDevice + groups("- {name: g%d, count: 10000}", 100), tooManyDevices(1_000_001)},
		"one more":   {oneDevice + groups("- {name: g%d, count: 5000}", 2), tooManyDevices(10_001)},
		"partitions": {"driver: d\ndevices:\n" + groups("- {name: g%d, count: 10, counters: {c: 1}, partitions: [{name: p, count: 100, consumes: {c: 1}}]}", 10), tooManyDevices(10_100)},
		"counter sets": {
			oneDevice + "sharedCounters:\n" + groups("- {name: s%d, count: 10000, counters: {c: {value: 1}}}", 2),
			"spec.sharedCounters: Invalid value: 20000: a template may make at most 10000 counter sets, with one for each device with counters or slots: lower count",
		},
	} {
		t.Run(name, func(t *testing.T) {
			given := source(t, "t", test.spec)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, errs := Compile(given)
			runtime.ReadMemStats(&after)
			require.EqualError(t, errs.ToAggregate(), test.want)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8<<20))
		})
	}
	require.Equal(t, MaxTemplateDevices, compile(t, "t", "driver: d\ndevices: [{name: a, count: 9000}, {name: b, count: 1000}]\n").Size())
}

// TestSizeOfSlices: slices that all name the same devices do not add up.
func TestSizeOfSlices(t *testing.T) {
	t.Parallel()
	_, errs := Compile(source(t, "t", "driver: d\ndevices: [{name: a, count: 10000}]\nslices:\n"+strings.Repeat("- {devices: [a, a]}\n", 1000)))
	require.NotEmpty(t, errs)
	require.Less(t, len(errs), 10)
}

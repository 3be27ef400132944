package timeline

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
)

// TestReport is the story of a device, with something every minute.
func TestReport(t *testing.T) {
	t.Parallel()
	var line Timeline
	claim := inventory.Claim{Name: "c"}
	prepared, failing := claim, claim
	prepared.Prepared, failing.Failure = true, "no"
	next := start
	for _, step := range []struct {
		tainted []string
		gone    bool
		claims  []inventory.Claim
	}{
		{gone: true},
		{},
		{claims: []inventory.Claim{claim}},
		{claims: []inventory.Claim{failing}},
		{claims: []inventory.Claim{prepared}},
		{claims: []inventory.Claim{{Name: "other", Prepared: true}}},
		{tainted: []string{"gpu-0"}},
		{},
		{gone: true},
	} {
		f := &fleet{nodes: []string{"n"}}
		if !step.gone {
			f.publish("n", "d", 1, step.tainted...)
		}
		for _, has := range step.claims {
			f.allocate("n", "d", "gpu-0", has)
		}
		line.Note(f.take(), next)
		next = next.Add(time.Minute)
	}
	report := line.Report(next)
	require.Equal(t, 10, report.Seconds)
	require.Len(t, report.Buckets, 9*6+1)
	var kinds []Kind
	var names [][]string
	for _, change := range report.Changes {
		kinds, names = append(kinds, change.Kind), append(names, change.Claims)
	}
	require.Equal(t, []Kind{Retired, Released, Tainted, Prepared, Prepared, Failed, Allocated, Published}, kinds)
	require.Equal(t, [][]string{nil, nil, {"default/other"}, {"default/other"}, {"default/c"}, {"default/c"}, {"default/c"}, nil}, names)
	require.Equal(t, Change{start.Add(2 * time.Minute), Allocated, "n", "d", "n", "gpu-0", []string{"default/c"}}, report.Changes[6])
	at := func(minute int) Bucket { return report.Buckets[minute*6] }
	require.Equal(t, start.Add(3*time.Minute), at(3).From)
	require.Equal(t, map[Kind]int{Failed: 1}, at(3).Changes)
	require.Equal(t, inventory.Usage{Used: 1, Total: 1}, at(3).Drivers[0].Usage)
	require.Empty(t, at(0).Drivers)
	require.Empty(t, at(9).Drivers)
}

func TestReportOfNothing(t *testing.T) {
	t.Parallel()
	var line Timeline
	require.Equal(t, &Report{Begins: start, Ends: start, Buckets: []Bucket{}, Changes: []Change{}}, line.Report(start))
}

// TestKinds are those that the story of one device does not have.
func TestKinds(t *testing.T) {
	t.Parallel()
	has := func(state inventory.State, names ...string) *inventory.Device {
		device := &inventory.Device{State: state}
		for _, name := range names {
			device.Claims = append(device.Claims, inventory.Claim{Name: name})
		}
		return device
	}
	for name, test := range map[string]struct {
		before, after *inventory.Device
		want          Kind
	}{
		"is blocked":             {has(inventory.Free), has(inventory.Blocked), ""},
		"is no longer blocked":   {has(inventory.Blocked), has(inventory.Free), ""},
		"is blocked after claim": {has(inventory.Prepared, "a"), has(inventory.Blocked), Released},
		"one more share":         {has(inventory.Prepared, "a"), has(inventory.Prepared, "a", "b"), Prepared},
		"one share less":         {has(inventory.Prepared, "a", "b"), has(inventory.Prepared, "b"), Released},
		"claim of a tainted":     {has(inventory.Tainted), has(inventory.Tainted, "a"), ""},
		"unprepared":             {has(inventory.Prepared, "a"), has(inventory.Allocated, "a"), Allocated},
		"published and tainted":  {nil, has(inventory.Tainted), Published},
	} {
		require.Equal(t, test.want, kindOf(test.before, test.after), name)
	}
	watched := has(inventory.Free, "a")
	watched.Claims[0].AdminAccess = true
	require.Empty(t, kindOf(has(inventory.Free), watched), "a claim that only observes it")
}

// TestSteps: as short as sixty buckets allow.
func TestSteps(t *testing.T) {
	t.Parallel()
	for all, want := range map[time.Duration]time.Duration{
		0: 5 * time.Second, 5 * time.Minute: 5 * time.Second, 5*time.Minute + 1: 10 * time.Second, 21 * time.Minute: 30 * time.Second, time.Hour: time.Minute,
	} {
		require.Equal(t, want, stepOf(all), all)
	}
}

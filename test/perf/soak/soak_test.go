package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// calm are samples of a sidecar that is as it was, all a little different.
func calm() []sample {
	var all []sample
	for i := range 16 {
		wave := int64(i % 3)
		all = append(all, sample{
			resident: (60 + wave) * sidecar.MiB, heap: (12 + wave) * sidecar.MiB, goroutines: 90 + int(wave),
			median: map[string]time.Duration{published: time.Duration(5+wave) * time.Millisecond, prepared: 9 * time.Millisecond},
		})
	}
	return all
}

func TestJudge(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, printVerdicts(&out, calm()))
	require.Equal(t, len(measures), strings.Count(out.String(), ": flat"))

	warming := calm()
	for i := range 4 {
		warming[i].resident, warming[i].goroutines = sidecar.MiB, 1
	}
	require.NoError(t, printVerdicts(&out, warming), "the first quarter does not count")

	for rising, spoil := range map[string]func(s *sample, minute int){
		"resident memory, MiB": func(s *sample, minute int) { s.resident += int64(minute) * 2 * sidecar.MiB },
		"heap, MiB":            func(s *sample, minute int) { s.heap += int64(minute) * sidecar.MiB / 2 },
		"goroutines":           func(s *sample, minute int) { s.goroutines += 2 * minute },
		"lag of preparing, ms": func(s *sample, minute int) { s.median[prepared] += time.Duration(minute) * 5 * time.Millisecond },
	} {
		samples := calm()
		for minute := range samples {
			spoil(&samples[minute], minute)
		}
		out.Reset()
		require.EqualError(t, printVerdicts(&out, samples), "compare the quarters: not flat: "+rising)
		require.Contains(t, out.String(), "RISING")
	}
}

func TestLine(t *testing.T) {
	t.Parallel()
	s := calm()[0]
	s.worst = map[string]time.Duration{prepared: 40 * time.Millisecond}
	s.changes = 360
	require.Equal(t, "   1m0s      360      0     0    60 MiB  12.0 MiB          90  prepare 9 40 ms", s.formatLine(time.Minute))
	require.Less(t, strings.Index(header, "HEAP"), strings.Index(header, "GOROUTINES"))
}

func slice(node, round string, isTainted bool) *resourcev1.ResourceSlice {
	device := resourcev1.Device{Name: "gpu-0", Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"round": {StringValue: &round}}}
	if isTainted {
		device.Taints = []resourcev1.DeviceTaint{{Key: "soak/broken", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
	}
	return &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{Driver: fleet.Driver, NodeName: &node, Devices: []resourcev1.Device{device}}}
}

func TestEffects(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEffects()
		e.expectSlice("a")
		time.Sleep(time.Second)
		e.sawSlice(slice("a", "0", false))
		e.sawSlice(slice("b", "0", false))
		e.expectSlice("b") // its slice was seen first
		e.expectEffect(change{tainted, taintOf("a", true)})
		time.Sleep(2 * time.Second)
		e.sawSlice(slice("a", "0", false))
		lags, stuck := e.takeLags(time.Second)
		require.Equal(t, map[string][]time.Duration{published: {time.Second, 0}}, lags)
		require.Equal(t, 1, stuck, "the taint has not come")

		e.sawSlice(slice("a", "0", true))
		e.expectEffect(change{templated, "1"})
		time.Sleep(time.Second)
		e.sawSlice(slice("a", "1", true))
		lags, stuck = e.takeLags(time.Minute)
		require.Equal(t, map[string][]time.Duration{tainted: {2 * time.Second}}, lags, "not all nodes have the round")
		require.Zero(t, stuck)
		e.sawSlice(slice("b", "1", true))
		lags, _ = e.takeLags(time.Minute)
		require.Equal(t, map[string][]time.Duration{templated: {time.Second}}, lags)

		e.expectEffect(change{prepared, "p"})
		require.True(t, e.cancelEffect(change{prepared, "p"}))
		require.False(t, e.cancelEffect(change{prepared, "p"}))
		e.expectEffect(change{tainted, taintOf("a", false)})
		e.forgetNode("a")
		time.Sleep(time.Hour)
		_, stuck = e.takeLags(time.Minute)
		require.Zero(t, stuck)
	})
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	require.Contains(t, templatesOf(3), `      round: "3"`)
	require.Contains(t, templatesOf(3), "nic.example.com")
	require.NotContains(t, templatesOf(2), "nic.example.com")
}

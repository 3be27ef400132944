package plugin

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	healthv1 "k8s.io/kubelet/pkg/apis/dra-health/v1"
)

// patient is a Plugin in a bubble that notes when changes of its health are told.
type patient struct {
	Plugin
	began time.Time

	mu   sync.Mutex
	told []string
}

// hasTold is what was told so far.
func (p *patient) hasTold() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.told)
}

// countDevices is how many devices are remembered.
func (p *patient) countDevices() int {
	p.health.mu.Lock()
	defer p.health.mu.Unlock()
	return len(p.health.devices)
}

// report takes a report of devices, each "name=message", that holds for some seconds.
func (p *patient) report(status healthv1.HealthStatus, seconds int64, devices ...string) {
	r := &healthv1.NodeWatchResourcesResponse{}
	for _, device := range devices {
		name, message, _ := strings.Cut(device, "=")
		r.Devices = append(r.Devices, &healthv1.DeviceHealth{
			Device: &healthv1.DeviceIdentifier{PoolName: "p", DeviceName: name}, Health: status, Message: message, HealthCheckTimeoutSeconds: seconds,
		})
	}
	if p.health.recordReport(r, p.tell) {
		p.tell()
	}
}

// tell notes the time and the health of the device a.
func (p *patient) tell() {
	reported, _ := p.HealthOf(Device{"p", "a"})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = append(p.told, fmt.Sprintf("%s %s", time.Since(p.began), reported.Status))
}

// inBubble runs a test of a patient.
func inBubble(t *testing.T, test func(t *testing.T, p *patient)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &patient{began: time.Now()}
		test(t, p)
		p.health.clearReports()
	})
}

// letPass lets time pass, and all happen that is due meanwhile.
func letPass(duration time.Duration) {
	time.Sleep(duration)
	synctest.Wait()
}

// TestStaleIsTold: each report goes out of date when it says so, whatever others say, and that is told once.
func TestStaleIsTold(t *testing.T) {
	for name, test := range map[string]struct {
		reports func(p *patient)
		want    []string
	}{
		"longer than the default": {func(p *patient) { p.report(healthv1.HealthStatus_HEALTHY, 60, "a") }, []string{"0s Healthy", "1m0s Unknown"}},
		"beside a shorter one": {func(p *patient) {
			p.report(healthv1.HealthStatus_HEALTHY, 60, "a")
			p.report(healthv1.HealthStatus_HEALTHY, 10, "b")
		}, []string{"0s Healthy", "1s Healthy", "10s Healthy", "1m0s Unknown"}},
		"left out while others are reported": {func(p *patient) {
			p.report(healthv1.HealthStatus_HEALTHY, 0, "a", "b")
			for range 60 {
				letPass(time.Second)
				p.report(healthv1.HealthStatus_HEALTHY, 0, "b")
			}
		}, []string{"0s Healthy", "30s Unknown", "1m30s Unknown"}},
		"renewed": {func(p *patient) {
			for range 3 {
				p.report(healthv1.HealthStatus_HEALTHY, 0, "a")
				letPass(20 * time.Second)
			}
		}, []string{"0s Healthy", "1m10s Unknown"}},
		"never": {func(p *patient) { p.report(healthv1.HealthStatus_HEALTHY, math.MaxInt64, "a") }, []string{"0s Healthy"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, p *patient) {
				test.reports(p)
				letPass(time.Hour)
				require.Equal(t, test.want, p.hasTold())
			})
		})
	}
}

// TestFlappingIsHeldBack: a plugin that changes its mind all the time is heard ever more rarely, and what it says last
// arrives.
func TestFlappingIsHeldBack(t *testing.T) {
	inBubble(t, func(t *testing.T, p *patient) {
		for range 10_000 {
			p.report(healthv1.HealthStatus_HEALTHY, 0, "a")
			letPass(time.Millisecond)
			p.report(healthv1.HealthStatus_UNHEALTHY, 0, "a")
			letPass(time.Millisecond)
		}
		letPass(15 * time.Second)
		require.Len(t, p.hasTold(), 6, p.hasTold())
		require.Equal(t, "25s Unhealthy", p.hasTold()[5])
		letPass(time.Minute)
		p.report(healthv1.HealthStatus_HEALTHY, 0, "a")
		require.Equal(t, []string{"49.999s Unknown", "1m35s Healthy"}, p.hasTold()[6:], "at once after a quiet time")
	})
}

// TestDevicesAreForgotten: the memory of a plugin is bounded by what it reports now, and by a number.
func TestDevicesAreForgotten(t *testing.T) {
	batch := func(i, size int) (names []string) {
		for k := range size {
			names = append(names, fmt.Sprintf("%d-%d", i, k))
		}
		return names
	}
	t.Run("stale", func(t *testing.T) {
		inBubble(t, func(t *testing.T, p *patient) {
			for i := range 100 {
				p.report(healthv1.HealthStatus_HEALTHY, 0, batch(i, 100)...)
				letPass(time.Minute)
				require.LessOrEqual(t, p.countDevices(), 600)
			}
			letPass(expiredRetention)
			require.Zero(t, p.countDevices())
			require.False(t, p.ReportsHealth())
		})
	})
	t.Run("too many", func(t *testing.T) {
		inBubble(t, func(t *testing.T, p *patient) {
			for i := range 5 {
				p.report(healthv1.HealthStatus_HEALTHY, math.MaxInt64, batch(i, maxDevices/4)...)
				letPass(time.Second)
			}
			require.Equal(t, maxDevices, p.countDevices())
			_, known := p.HealthOf(Device{"p", "0-0"})
			require.False(t, known, "the oldest make room")
			_, known = p.HealthOf(Device{"p", "4-0"})
			require.True(t, known)
		})
	})
	t.Run("long names", func(t *testing.T) {
		inBubble(t, func(t *testing.T, p *patient) {
			p.report(healthv1.HealthStatus_HEALTHY, 0, strings.Repeat("x", 64))
			require.Zero(t, p.countDevices())
		})
	})
}

// TestMessageIsShortened to what the API server takes, between two characters.
func TestMessageIsShortened(t *testing.T) {
	t.Parallel()
	require.Equal(t, "short", truncateText("short", corev1.ResourceHealthMessageMaxLength))
	require.Len(t, truncateText(strings.Repeat("x", 2000), corev1.ResourceHealthMessageMaxLength), corev1.ResourceHealthMessageMaxLength)
	for shift := range 4 {
		cut := truncateText(strings.Repeat("x", shift)+strings.Repeat("温", 2000), corev1.ResourceHealthMessageMaxLength)
		require.True(t, utf8.ValidString(cut), "%q", cut)
		require.LessOrEqual(t, len(cut), corev1.ResourceHealthMessageMaxLength)
		require.Greater(t, len(cut), corev1.ResourceHealthMessageMaxLength-utf8.UTFMax)
		require.True(t, strings.HasSuffix(cut, "温..."))
	}
}

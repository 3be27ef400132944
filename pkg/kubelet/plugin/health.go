package plugin

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	healthv1 "k8s.io/kubelet/pkg/apis/dra-health/v1"
	healthv1alpha1 "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"
)

const (
	// staleAfter is how long a report holds that does not say how long (DefaultHealthTimeout
	// in pkg/kubelet/cm/dra). longestTimeout bounds what a report may say.
	staleAfter     = 30 * time.Second
	longestTimeout = 365 * 24 * time.Hour
	// forgottenAfter is how long a device is remembered whose report is out of date.
	forgottenAfter = 5 * time.Minute
	// mostDevices is how many devices of a plugin are remembered. Those whose reports
	// end first make room.
	mostDevices = 10_000
	// watchAgain is how long after the end of a stream the next one is opened.
	watchAgain = 5 * time.Second
	// firstPause and longestPause bound the time between two changes that are told. It doubles
	// as long as there are changes in each pause.
	firstPause   = time.Second
	longestPause = 10 * time.Second
	// reportsPerSecond and reportsAtOnce are how many reports of a plugin are read. One that
	// reports faster waits, and takes no time from other plugins.
	reportsPerSecond = 10
	reportsAtOnce    = 50
)

// Device names a device of a driver.
type Device struct{ Pool, Name string }

// Health is what a driver says of a device.
type Health struct {
	Status  corev1.ResourceHealthStatus
	Message string

	until time.Time
}

// health is what a plugin has reported of its devices.
type health struct {
	mu      sync.Mutex
	devices map[Device]Health
	// timer fires when the next report goes out of date or is forgotten, and when a change
	// that is held back may be told.
	timer *time.Timer

	// isOwed says that a change is held back until the pause ends.
	isOwed   bool
	pause    time.Duration
	pauseEnd time.Time
}

// HealthOf is what the driver has reported of a device. It reports nothing of one whose
// report is out of date.
func (p *Plugin) HealthOf(device Device) (reported Health, known bool) {
	p.health.mu.Lock()
	defer p.health.mu.Unlock()
	reported, known = p.health.devices[device]
	if !known || !time.Now().Before(reported.until) {
		return Health{Status: corev1.ResourceHealthStatusUnknown}, known
	}
	return reported, true
}

// ReportsHealth reports whether the driver has reported the health of any device.
func (p *Plugin) ReportsHealth() bool {
	p.health.mu.Lock()
	defer p.health.mu.Unlock()
	return len(p.health.devices) > 0
}

// watchHealth reads the reports of a plugin until ctx ends, or the plugin says that it has
// none.
func (p *Plugin) watchHealth(ctx context.Context, changed func()) {
	var client healthv1.DRAResourceHealthClient = healthv1.V1Alpha1ClientWrapper{Client: healthv1alpha1.NewDRAResourceHealthClient(p.conn)}
	if p.hasHealthV1 {
		client = healthv1.NewDRAResourceHealthClient(p.conn)
	}
	ctx, none := context.WithCancel(ctx)
	defer none()
	reports := flowcontrol.NewTokenBucketRateLimiter(reportsPerSecond, reportsAtOnce)
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		stream, err := client.NodeWatchResources(ctx, &healthv1.NodeWatchResourcesRequest{})
		for err == nil {
			var response *healthv1.NodeWatchResourcesResponse
			if err = reports.Wait(ctx); err != nil {
				break
			}
			if response, err = stream.Recv(); err == nil && p.health.recordReport(response, changed) {
				changed()
			}
		}
		if p.health.clearReports() {
			changed()
		}
		if status.Code(err) == codes.Unimplemented {
			none()
		}
		klog.FromContext(ctx).V(4).Info("The stream of the health of devices has ended", "driver", p.Driver, "err", err)
	}, watchAgain)
}

// recordReport takes a report, and reports whether a change is to be told now. Devices that are
// not in the report keep what was said of them, for as long as that holds. Changed is called for
// a change that is held back, and when reports go out of date.
func (h *health) recordReport(response *healthv1.NodeWatchResourcesResponse, changed func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	hasChanged := h.expireReports(now)
	before := maps.Clone(h.devices)
	if h.devices == nil {
		h.devices = map[Device]Health{}
	}
	for _, reported := range response.GetDevices() {
		holds := staleAfter
		if seconds := reported.GetHealthCheckTimeoutSeconds(); seconds > 0 {
			holds = time.Duration(min(seconds, int64(longestTimeout/time.Second))) * time.Second
		}
		device := Device{reported.GetDevice().GetPoolName(), reported.GetDevice().GetDeviceName()}
		if len(device.Pool) <= validation.DNS1123SubdomainMaxLength && len(device.Name) <= validation.DNS1123LabelMaxLength { // or no claim can have it
			h.devices[device] = Health{statusOf(reported.GetHealth()), truncateText(reported.GetMessage(), corev1.ResourceHealthMessageMaxLength), now.Add(holds)}
		}
	}
	h.forgetExcessDevices()
	hasChanged = hasChanged || !maps.EqualFunc(before, h.devices, func(a, b Health) bool { return a.Status == b.Status && a.Message == b.Message })
	return h.scheduleNextChange(now, hasChanged, changed)
}

// expireReports makes devices unknown whose reports are out of date, and later forgets them. It reports
// whether any became unknown.
func (h *health) expireReports(now time.Time) (hasChanged bool) {
	unknown := Health{Status: corev1.ResourceHealthStatusUnknown}
	for device, reported := range h.devices {
		switch unknown.until = reported.until; {
		case now.Before(reported.until):
		case !now.Before(reported.until.Add(forgottenAfter)):
			delete(h.devices, device)
		case reported != unknown:
			h.devices[device], hasChanged = unknown, true
		}
	}
	return hasChanged
}

// forgetExcessDevices forgets the devices whose reports end first if there are too many.
func (h *health) forgetExcessDevices() {
	if len(h.devices) <= mostDevices {
		return
	}
	byEnd := slices.SortedFunc(maps.Keys(h.devices), func(a, b Device) int { return h.devices[a].until.Compare(h.devices[b].until) })
	for _, device := range byEnd[:len(byEnd)-mostDevices] {
		delete(h.devices, device)
	}
}

// scheduleNextChange reports whether a change is to be told now, and sets the timer for what comes next.
func (h *health) scheduleNextChange(now time.Time, hasChanged bool, changed func()) (tell bool) {
	h.isOwed = h.isOwed || hasChanged
	if tell = h.isOwed && !now.Before(h.pauseEnd); tell {
		isQuiet := now.Sub(h.pauseEnd) >= h.pause
		h.isOwed, h.pause = false, min(2*h.pause, longestPause)
		if isQuiet {
			h.pause = firstPause
		}
		h.pauseEnd = now.Add(h.pause)
	}
	var next time.Time
	if h.isOwed {
		next = h.pauseEnd
	}
	for _, reported := range h.devices {
		end := reported.until
		if !now.Before(end) {
			end = end.Add(forgottenAfter)
		}
		if next.IsZero() || end.Before(next) {
			next = end
		}
	}
	if h.timer != nil {
		h.timer.Stop()
	}
	if !next.IsZero() {
		h.timer = time.AfterFunc(next.Sub(now), func() { h.applyTimeouts(changed) })
	}
	return tell
}

// applyTimeouts looks at what the time has changed.
func (h *health) applyTimeouts(changed func()) {
	h.mu.Lock()
	now := time.Now()
	tell := len(h.devices) > 0 && h.scheduleNextChange(now, h.expireReports(now), changed)
	h.mu.Unlock()
	if tell {
		changed()
	}
}

// clearReports forgets all reports, and reports whether there were any.
func (h *health) clearReports() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := len(h.devices) > 0
	h.devices, h.isOwed = nil, false
	if h.timer != nil {
		h.timer.Stop()
	}
	return known
}

func statusOf(reported healthv1.HealthStatus) corev1.ResourceHealthStatus {
	switch reported {
	case healthv1.HealthStatus_HEALTHY:
		return corev1.ResourceHealthStatusHealthy
	case healthv1.HealthStatus_UNHEALTHY:
		return corev1.ResourceHealthStatusUnhealthy
	default:
		return corev1.ResourceHealthStatusUnknown
	}
}

// truncateText shortens a text to so many bytes, between two characters (truncateHealthMessage in
// pkg/kubelet/cm/dra).
func truncateText(text string, length int) string {
	const more = "..."
	if len(text) <= length {
		return text
	}
	return strings.ToValidUTF8(text[:length-len(more)], "") + more
}

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
	// defaultValidity is how long a report is valid that does not say so (DefaultHealthTimeout in pkg/kubelet/cm/dra).
	// maxValidity bounds what a report may say.
	defaultValidity = 30 * time.Second
	maxValidity     = 365 * 24 * time.Hour
	// expiredRetention is how long a device is remembered after its report has expired.
	expiredRetention = 5 * time.Minute
	// maxDevices bounds the devices of a plugin that are remembered. Those whose reports expire first make room.
	maxDevices = 10_000
	// rewatchDelay is the time between the end of a stream and the start of the next one.
	rewatchDelay = 5 * time.Second
	// minNotifyInterval and maxNotifyInterval bound the time between two notifications of changes. It doubles while
	// there are changes in each interval.
	minNotifyInterval = time.Second
	maxNotifyInterval = 10 * time.Second
	// reportsPerSecond and reportBurst bound how fast the reports of a plugin are read. A plugin that reports faster
	// waits, and takes no time from other plugins.
	reportsPerSecond = 10
	reportBurst      = 50
)

// Device names a device of a driver.
type Device struct{ Pool, Name string }

// Health is what a driver has reported of a device.
type Health struct {
	Status  corev1.ResourceHealthStatus
	Message string

	validUntil time.Time
}

// health is what a plugin has reported of its devices.
type health struct {
	mu      sync.Mutex
	devices map[Device]Health
	// timer fires when the next report expires or is forgotten, and when a delayed notification is due.
	timer *time.Timer

	// isOwed says that a notification is delayed until nextNotify.
	isOwed         bool
	notifyInterval time.Duration
	nextNotify     time.Time
}

// HealthOf returns what the driver has reported of a device. The health of a device whose report has expired is unknown.
func (p *Plugin) HealthOf(device Device) (reported Health, known bool) {
	p.health.mu.Lock()
	defer p.health.mu.Unlock()
	reported, known = p.health.devices[device]
	if !known || !time.Now().Before(reported.validUntil) {
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

// watchHealth reads the reports of a plugin until ctx ends or the plugin says that it does not report.
func (p *Plugin) watchHealth(ctx context.Context, changed func()) {
	var client healthv1.DRAResourceHealthClient = healthv1.V1Alpha1ClientWrapper{Client: healthv1alpha1.NewDRAResourceHealthClient(p.conn)}
	if p.hasHealthV1 {
		client = healthv1.NewDRAResourceHealthClient(p.conn)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	reports := flowcontrol.NewTokenBucketRateLimiter(reportsPerSecond, reportBurst)
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
			stop()
		}
		klog.FromContext(ctx).V(4).Info("The health stream of the plugin has ended", "driver", p.Driver, "err", err)
	}, rewatchDelay)
}

// recordReport records a report, and returns whether a notification is due now. Devices that are not in the report keep their
// earlier one until it expires. Changed is called for delayed notifications and for reports that expire.
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
		validity := defaultValidity
		if seconds := reported.GetHealthCheckTimeoutSeconds(); seconds > 0 {
			validity = time.Duration(min(seconds, int64(maxValidity/time.Second))) * time.Second
		}
		device := Device{reported.GetDevice().GetPoolName(), reported.GetDevice().GetDeviceName()}
		if len(device.Pool) <= validation.DNS1123SubdomainMaxLength && len(device.Name) <= validation.DNS1123LabelMaxLength { // no claim can name other devices
			h.devices[device] = Health{statusOf(reported.GetHealth()), truncateText(reported.GetMessage(), corev1.ResourceHealthMessageMaxLength), now.Add(validity)}
		}
	}
	if len(h.devices) > maxDevices {
		byEnd := slices.SortedFunc(maps.Keys(h.devices), func(a, b Device) int { return h.devices[a].validUntil.Compare(h.devices[b].validUntil) })
		for _, device := range byEnd[:len(byEnd)-maxDevices] {
			delete(h.devices, device)
		}
	}
	hasChanged = hasChanged || !maps.EqualFunc(before, h.devices, func(a, b Health) bool { return a.Status == b.Status && a.Message == b.Message })
	return h.scheduleNextChange(now, hasChanged, changed)
}

// expireReports makes devices with expired reports unknown, and forgets them later. It returns whether any became unknown.
func (h *health) expireReports(now time.Time) (hasChanged bool) {
	unknown := Health{Status: corev1.ResourceHealthStatusUnknown}
	for device, reported := range h.devices {
		switch unknown.validUntil = reported.validUntil; {
		case now.Before(reported.validUntil):
		case !now.Before(reported.validUntil.Add(expiredRetention)):
			delete(h.devices, device)
		case reported != unknown:
			h.devices[device], hasChanged = unknown, true
		}
	}
	return hasChanged
}

// scheduleNextChange returns whether a notification is due now, and sets the timer for what comes next.
func (h *health) scheduleNextChange(now time.Time, hasChanged bool, changed func()) (notify bool) {
	h.isOwed = h.isOwed || hasChanged
	if notify = h.isOwed && !now.Before(h.nextNotify); notify {
		isQuiet := now.Sub(h.nextNotify) >= h.notifyInterval
		h.isOwed, h.notifyInterval = false, min(2*h.notifyInterval, maxNotifyInterval)
		if isQuiet {
			h.notifyInterval = minNotifyInterval
		}
		h.nextNotify = now.Add(h.notifyInterval)
	}
	var next time.Time
	if h.isOwed {
		next = h.nextNotify
	}
	for _, reported := range h.devices {
		end := reported.validUntil
		if !now.Before(end) {
			end = end.Add(expiredRetention)
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
	return notify
}

// applyTimeouts runs when the timer fires.
func (h *health) applyTimeouts(changed func()) {
	h.mu.Lock()
	now := time.Now()
	notify := len(h.devices) > 0 && h.scheduleNextChange(now, h.expireReports(now), changed)
	h.mu.Unlock()
	if notify {
		changed()
	}
}

// clearReports forgets all reports, and returns whether there were any.
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

// truncateText shortens a text to a length in bytes, between two characters (truncateHealthMessage in pkg/kubelet/cm/dra).
func truncateText(text string, length int) string {
	const more = "..."
	if len(text) <= length {
		return text
	}
	return strings.ToValidUTF8(text[:length-len(more)], "") + more
}

package plugin

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	healthv1 "k8s.io/kubelet/pkg/apis/dra-health/v1"
	healthv1alpha1 "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"
)

const (
	// staleAfter is how long a report holds that does not say how long (DefaultHealthTimeout
	// in pkg/kubelet/cm/dra).
	staleAfter = 30 * time.Second
	// watchAgain is how long after the end of a stream the next one is opened.
	watchAgain = 5 * time.Second
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
	stale   *time.Timer
}

// HealthOf is what the driver has reported of a device. It reports nothing of one whose
// report is out of date.
func (p *Plugin) HealthOf(device Device) (reported Health, known bool) {
	p.health.mu.Lock()
	defer p.health.mu.Unlock()
	reported, known = p.health.devices[device]
	if !known || time.Now().After(reported.until) {
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
	if slices.Contains(p.services, healthv1.DRAResourceHealthService) {
		client = healthv1.NewDRAResourceHealthClient(p.conn)
	}
	ctx, none := context.WithCancel(ctx)
	defer none()
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		stream, err := client.NodeWatchResources(ctx, &healthv1.NodeWatchResourcesRequest{})
		for err == nil {
			var response *healthv1.NodeWatchResourcesResponse
			if response, err = stream.Recv(); err == nil && p.health.update(response, changed) {
				changed()
			}
		}
		if p.health.clear() {
			changed()
		}
		if status.Code(err) == codes.Unimplemented {
			none()
		}
		klog.FromContext(ctx).V(4).Info("The stream of the health of devices has ended", "driver", p.Driver, "err", err)
	}, watchAgain)
}

// update takes a report, and reports whether anything is not as it was. Devices that are
// not in it keep what was said of them, for as long as it holds.
func (h *health) update(response *healthv1.NodeWatchResourcesResponse, changed func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := maps.Clone(h.devices)
	if h.devices == nil {
		h.devices = map[Device]Health{}
	}
	now, next := time.Now(), staleAfter
	for _, reported := range response.GetDevices() {
		holds := staleAfter
		if seconds := reported.GetHealthCheckTimeoutSeconds(); seconds > 0 {
			holds = time.Duration(seconds) * time.Second
		}
		next = min(next, holds)
		device := Device{reported.GetDevice().GetPoolName(), reported.GetDevice().GetDeviceName()}
		h.devices[device] = Health{statusOf(reported.GetHealth()), truncate(reported.GetMessage()), now.Add(holds)}
	}
	if h.stale == nil {
		h.stale = time.AfterFunc(next+time.Millisecond, changed)
	} else {
		h.stale.Reset(next + time.Millisecond)
	}
	return !maps.EqualFunc(before, h.devices, func(a, b Health) bool { return a.Status == b.Status && a.Message == b.Message })
}

// clear forgets all reports, and reports whether there were any.
func (h *health) clear() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := len(h.devices) > 0
	h.devices = nil
	if h.stale != nil {
		h.stale.Stop()
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

// truncate shortens a message to what the API server takes (truncateHealthMessage in
// pkg/kubelet/cm/dra).
func truncate(message string) string {
	if len(message) <= corev1.ResourceHealthMessageMaxLength {
		return message
	}
	return message[:corev1.ResourceHealthMessageMaxLength-3] + "..."
}

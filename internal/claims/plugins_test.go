package claims

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/claims/templates"
	"github.com/kwok-dra/kwok-dra/internal/extensions/devicehealth"
)

// flapping are Kubelets with a plugin of the driver d, which says of its devices that they are healthy or not.
type flapping struct {
	healthy atomic.Bool
	node    func(string)
}

func (f *flapping) Enabled() bool { return true }
func (f *flapping) AddDrivers(ofTemplates *templates.Driver, _ *corev1.Pod, _ *corev1.Node, _ func(string) bool) plan.Driver {
	ofTemplates.IsReal = func(driver string) bool { return driver == "d" }
	return &flappingDriver{Driver: ofTemplates, healthy: f.healthy.Load()}
}

func (f *flapping) Driver(*corev1.Pod, *corev1.Node, func(string) bool) plan.Driver {
	return &flappingDriver{healthy: f.healthy.Load()}
}
func (f *flapping) Call(*corev1.Pod, *corev1.Node, *plan.Call, func(string) bool) {}
func (f *flapping) Acknowledge(*corev1.Pod, *corev1.Node, error)                  {}
func (f *flapping) OnChange(node func(string), _ func(types.NamespacedName))      { f.node = node }

// flappingDriver implements the part of plan.Driver that a Pod needs which runs.
type flappingDriver struct {
	plan.Driver
	healthy bool
}

func (d *flappingDriver) Has(driver string) bool          { return driver == "d" }
func (d *flappingDriver) Registered(string) (bool, error) { return true, nil }
func (d *flappingDriver) ReportsHealth() bool             { return true }
func (d *flappingDriver) Prepare([]*resourcev1.ResourceClaim) (plan.Answer, error) {
	return plan.Answered, nil
}

func (d *flappingDriver) Health(*corev1.Pod, *resourcev1.ResourceClaim, *resourcev1.DeviceRequestAllocationResult) (*devicehealth.Health, error) {
	h := &devicehealth.Health{Reported: true, ResourceHealth: corev1.ResourceHealth{ResourceID: "d/n/gpu-0", Health: corev1.ResourceHealthStatusUnhealthy}}
	if d.healthy {
		h.Health = corev1.ResourceHealthStatusHealthy
	}
	return h, nil
}

// TestPluginHealth: each change that is announced is shown.
func TestPluginHealth(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := newPod("p", "c")
		run(pod)
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue}}
		w := idleWorld(t, template("e", ""), newNode("n"), pod, allocated("c", pod))
		f := &flapping{}
		w.kubelets = f
		w.start()
		w.wrote("health p")
		f.healthy.Store(true)
		f.node("n")
		w.wrote("health p")
		require.Equal(t, statusesOf("claim:c d/n/gpu-0=Healthy"), w.health())
		f.healthy.Store(false)
		f.node("n")
		w.wrote("health p")
		require.Equal(t, statusesOf("claim:c d/n/gpu-0=Unhealthy"), w.health())
		w.settled()
	})
}

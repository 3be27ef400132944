package slices

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourceclient "k8s.io/client-go/kubernetes/typed/resource/v1"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
)

// gatedField is a field of a device that an API server drops without a word
// when the feature gate is off. Were it sent all the same, every slice would
// look edited for ever.
type gatedField struct {
	name, gate string
	used       func(device *resourcev1.Device) bool
	clear      func(device *resourcev1.Device)
}

var gatedFields = []gatedField{{
	name:  "taints",
	gate:  "DRADeviceTaints",
	used:  func(device *resourcev1.Device) bool { return len(device.Taints) > 0 },
	clear: func(device *resourcev1.Device) { device.Taints = nil },
}, {
	name:  "allowMultipleAllocations",
	gate:  "DRAConsumableCapacity",
	used:  func(device *resourcev1.Device) bool { return device.AllowMultipleAllocations != nil },
	clear: func(device *resourcev1.Device) { device.AllowMultipleAllocations = nil },
}, {
	// The gate is one for all three, and bindsToNode may be there alone.
	name: "bindingConditions",
	gate: "DRADeviceBindingConditions",
	used: func(device *resourcev1.Device) bool {
		return device.BindsToNode != nil || len(device.BindingConditions)+len(device.BindingFailureConditions) > 0
	},
	clear: func(device *resourcev1.Device) {
		device.BindsToNode, device.BindingConditions, device.BindingFailureConditions = nil, nil, nil
	},
}}

// serverFields knows which gated fields the API server keeps. The version does
// not tell, so it asks with a dry run, once for each field that is used.
type serverFields struct {
	client resourceclient.ResourceSliceInterface
	// report is called once for each source and field that is dropped. The source
	// is the name of a template, or of the annotation with device taints.
	report func(ctx context.Context, node *corev1.Node, source string, field gatedField)

	mu       sync.Mutex
	kept     map[string]bool
	reported map[[2]string]bool
}

func newServerFields(client resourceclient.ResourceSliceInterface, report func(context.Context, *corev1.Node, string, gatedField)) *serverFields {
	return &serverFields{client: client, report: report, kept: map[string]bool{}, reported: map[[2]string]bool{}}
}

// apply takes the fields from the pools that the server would drop.
func (s *serverFields) apply(ctx context.Context, node *corev1.Node, pools []devices.Pool) error {
	for i := range pools {
		for _, field := range gatedFields {
			if err := s.applyField(ctx, node, &pools[i], field); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *serverFields) applyField(ctx context.Context, node *corev1.Node, pool *devices.Pool, field gatedField) error {
	first := slices.IndexFunc(pool.Devices, func(d resourcev1.Device) bool { return field.used(&d) })
	if first < 0 {
		return nil
	}
	kept, err := s.keeps(ctx, node, pool, field, first)
	if err != nil || kept {
		return err
	}
	pool.Devices = slices.Clone(pool.Devices)
	for i := range pool.Devices {
		field.clear(&pool.Devices[i])
	}
	s.reportOnce(ctx, node, pool, field)
	return nil
}

// keeps tells whether the server keeps the field. The first caller asks, with
// the first device that has it; others wait for the answer.
func (s *serverFields) keeps(ctx context.Context, node *corev1.Node, pool *devices.Pool, field gatedField, device int) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kept, known := s.kept[field.name]; known {
		return kept, nil
	}
	probe := newSlices(node, &devices.Pool{Driver: pool.Driver, Name: pool.Name, Devices: pool.Devices[device : device+1]})[0]
	probe.Name, probe.GenerateName = "", "kwok-dra-probe-"
	stored, err := s.client.Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return false, fmt.Errorf("ask the API server whether it keeps %s of devices, with pool %s: %w", field.name, pool.Name, err)
	}
	s.kept[field.name] = len(stored.Spec.Devices) == 1 && field.used(&stored.Spec.Devices[0])
	return s.kept[field.name], nil
}

func (s *serverFields) reportOnce(ctx context.Context, node *corev1.Node, pool *devices.Pool, field gatedField) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, source := range sources(pool, field) {
		key := [2]string{source, field.name}
		if s.reported[key] {
			continue
		}
		s.reported[key] = true
		s.report(ctx, node, source, field)
	}
}

// sources are what the pool has the field from. What no template has is from the
// annotation.
func sources(pool *devices.Pool, field gatedField) []string {
	var names []string
	for _, t := range pool.Templates {
		if t.Uses(field.used) {
			names = append(names, t.Name)
		}
	}
	if len(names) == 0 {
		names = []string{v1alpha1.DeviceTaintsAnnotation}
	}
	return names
}

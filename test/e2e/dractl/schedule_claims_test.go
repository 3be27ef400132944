package dractl

import (
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// claim draws what a claim asks for.
func (d *dice) claim(driver, of string, f flavor) resourcev1.ResourceClaimSpec {
	var spec resourcev1.ResourceClaimSpec
	for i := range 1 + d.IntN(5)/2 {
		spec.Devices.Requests = append(spec.Devices.Requests, d.request(fmt.Sprintf("r%d", i), driver, of, f))
	}
	if d.in(3) {
		attribute := resourcev1.FullyQualifiedName(driver + "/" + pick(d, "root", "numa", "kind"))
		constraint := resourcev1.DeviceConstraint{MatchAttribute: &attribute}
		if d.in(2) {
			constraint = resourcev1.DeviceConstraint{DistinctAttribute: &attribute}
		}
		if d.in(2) {
			constraint.Requests = []string{spec.Devices.Requests[0].Name}
		}
		spec.Devices.Constraints = []resourcev1.DeviceConstraint{constraint}
	}
	return spec
}

func (d *dice) request(name, driver, of string, f flavor) resourcev1.DeviceRequest {
	if !d.in(4) {
		exactly := d.exactly(driver, of, f)
		if d.in(12) {
			exactly.AdminAccess = new(true)
		}
		return resourcev1.DeviceRequest{Name: name, Exactly: &exactly}
	}
	request := resourcev1.DeviceRequest{Name: name}
	for i := range 2 + d.IntN(2) {
		e := d.exactly(driver, of, f)
		if i > 0 && e.Count == 0 && harness.KubernetesMinor() < 36 {
			// allocateOne of older releases takes the second of all devices for the first alternative.
			e.AllocationMode, e.Count = resourcev1.DeviceAllocationModeExactCount, 1
		}
		request.FirstAvailable = append(request.FirstAvailable, resourcev1.DeviceSubRequest{
			Name: fmt.Sprintf("sub-%d", i), DeviceClassName: e.DeviceClassName, Selectors: e.Selectors, AllocationMode: e.AllocationMode,
			Count: e.Count, Tolerations: e.Tolerations, Capacity: e.Capacity,
		})
	}
	return request
}

func (d *dice) exactly(driver, of string, f flavor) resourcev1.ExactDeviceRequest {
	exactly := resourcev1.ExactDeviceRequest{
		DeviceClassName: of + pick(d, "-any", "-any", "-kind"), AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: int64(1 + d.IntN(5)/3),
	}
	if d.in(12) && (f != shared || harness.KubernetesMinor() >= 37) { // older releases leave out shared devices with too little left
		exactly.AllocationMode, exactly.Count = resourcev1.DeviceAllocationModeAll, 0
	}
	for range d.IntN(3) - d.IntN(2) {
		exactly.Selectors = append(exactly.Selectors, selecting(d.expression(driver)))
	}
	if f == tainted && d.in(2) {
		exactly.Tolerations = []resourcev1.DeviceToleration{{Key: pick(d, "x", "y"), Operator: resourcev1.DeviceTolerationOpExists}}
	}
	if f == shared && d.in(2) {
		exactly.Capacity = &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{
			"bandwidth": resource.MustParse(pick(d, "1", "3", "5", "12")),
		}}
	}
	return exactly
}

// unguarded is a selector that makes the scheduler fail where a device has no such attribute.
const unguarded = `root == "r1"`

// expression draws a selector, which may be unguarded.
func (d *dice) expression(driver string) string {
	is := fmt.Sprintf(`device.attributes[%q].`, driver)
	expressions := []string{
		is + `numa != 1`, is + `numa <= 1`, is + `kind == "b"`, is + `fast`, is + `kind in ["a", "b"]`,
		fmt.Sprintf(`device.capacity[%q].memory.compareTo(quantity("20Gi")) >= 0`, driver),
		fmt.Sprintf(`"root" in device.attributes[%q] && %sroot == "r0"`, driver, is),
	}
	if d.in(6) {
		return is + unguarded
	}
	return pick(d, expressions...)
}

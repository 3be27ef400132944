package podresources

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/claiminfo"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// AddTemplates adds to what real drivers have prepared of a claim what drivers with templates have: all that is allocated to
// the claim, once the Pod says that its claims are prepared. Info is nil if no real driver has the claim.
func AddTemplates(info *claiminfo.Info, pod *corev1.Pod, claim *resourcev1.ResourceClaim, hasTemplates func(driver string) bool) *claiminfo.Info {
	if claim == nil || claim.Status.Allocation == nil || facts.ReadyToStart(pod) != corev1.ConditionTrue {
		return info
	}
	if info == nil {
		info = &claiminfo.Info{ClaimUID: claim.UID, ClaimName: claim.Name, Namespace: claim.Namespace, DriverState: map[string]claiminfo.DriverState{}}
	}
	added := map[string][]claiminfo.Device{}
	for i := range claim.Status.Allocation.Devices.Results {
		result := &claim.Status.Allocation.Devices.Results[i]
		if _, isReal := info.DriverState[result.Driver]; isReal || !hasTemplates(result.Driver) || plan.SkipsPrepare(claim, result.Driver) {
			continue
		}
		added[result.Driver] = append(added[result.Driver], claiminfo.Device{
			PoolName: result.Pool, DeviceName: result.Device, ShareID: result.ShareID, RequestNames: []string{result.Request},
			CDIDeviceIDs: []string{cdiDeviceID(claim.UID, result)},
		})
	}
	for driver, devices := range added {
		info.DriverState[driver] = claiminfo.DriverState{Devices: devices}
	}
	return info
}

// cdiDeviceID is the CDI device of an allocated device that a template has, in the form that dra-example-driver and NVIDIA's
// driver use: a spec for each claim, with a device for each that is allocated.
func cdiDeviceID(claim types.UID, result *resourcev1.DeviceRequestAllocationResult) string {
	return fmt.Sprintf("k8s.%s/claim=%s-%s", result.Driver, claim, result.Device)
}

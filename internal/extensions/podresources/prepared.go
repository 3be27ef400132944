package podresources

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/claiminfo"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// Templates are the drivers of a node that templates describe.
type Templates interface {
	Has(driver string) bool
	// CDIDeviceIDs lists what the kubelet learns of an allocated device.
	CDIDeviceIDs(pod *corev1.Pod, claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) ([]string, error)
}

// AddTemplates adds to what real drivers have prepared of a claim what drivers with templates have: all that is allocated to
// the claim, once the Pod says that its claims are prepared. Info is nil if no real driver has the claim. A device that its
// template does not describe any more has no CDI devices.
func AddTemplates(info *claiminfo.Info, pod *corev1.Pod, claim *resourcev1.ResourceClaim, templates Templates) *claiminfo.Info {
	if claim == nil || claim.Status.Allocation == nil || facts.ReadyToStart(pod) != corev1.ConditionTrue {
		return info
	}
	added := map[string]claiminfo.DriverState{}
	for i := range claim.Status.Allocation.Devices.Results {
		result := &claim.Status.Allocation.Devices.Results[i]
		if !templates.Has(result.Driver) || plan.SkipsPrepare(claim, result.Driver) {
			continue
		}
		ids, err := templates.CDIDeviceIDs(pod, claim, result)
		if err != nil {
			ids = nil
		}
		added[result.Driver] = claiminfo.DriverState{Devices: append(added[result.Driver].Devices, claiminfo.Device{
			PoolName: result.Pool, DeviceName: result.Device, ShareID: result.ShareID, RequestNames: []string{result.Request}, CDIDeviceIDs: ids,
		})}
	}
	if info == nil {
		info = &claiminfo.Info{ClaimUID: claim.UID, ClaimName: claim.Name, Namespace: claim.Namespace, DriverState: map[string]claiminfo.DriverState{}}
	}
	maps.Copy(info.DriverState, added)
	return info
}

// Package claiminfo keeps for which Pods the claims of a node are prepared, and with which
// devices. It stands in for the kubelet's claimInfoCache and its checkpoint
// (claiminfo.go and state in pkg/kubelet/cm/dra), of which it has the file format.
package claiminfo

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// Info is what the kubelet knows of a claim.
type Info struct {
	ClaimUID  types.UID
	ClaimName string
	Namespace string
	// PodUIDs are the Pods that the claim is, or is being, prepared for.
	PodUIDs sets.Set[string]
	// DriverState has all drivers that are asked to prepare the claim.
	DriverState map[string]DriverState

	// prepared is not kept over a restart: drivers are asked once more.
	prepared bool
	// unpreparing says that drivers are being asked to unprepare the claim.
	unpreparing bool
}

// DriverState are the devices that a driver has prepared.
type DriverState struct{ Devices []Device }

// Device is what a driver has said of a device that it has prepared.
type Device struct {
	PoolName, DeviceName string
	ShareID              *types.UID
	RequestNames         []string
	CDIDeviceIDs         []string
}

// Claim is a claim that is to be prepared, and the drivers that are to be asked.
type Claim struct {
	*resourcev1.ResourceClaim
	Drivers []string
}

// Cache has the claims of one node. All that it changes is in its file. It ends with the ownership
// of the node: another replica may have written the file since.
type Cache struct {
	file string

	mu    sync.Mutex
	infos map[types.NamespacedName]*Info
	// stored is the file as it was read or written last, or nil where there was none.
	stored fs.FileInfo
}

// Key names the claim.
func (i *Info) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: i.Namespace, Name: i.ClaimName}
}

func keyOf(claim *resourcev1.ResourceClaim) types.NamespacedName {
	return types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}
}

// Join notes that claims are about to be prepared for a Pod, and returns those that are not
// prepared yet.
func (c *Cache) Join(pod types.UID, claims []Claim) ([]Claim, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, claim := range claims {
		info := c.infos[keyOf(claim.ResourceClaim)]
		switch {
		case info == nil:
		case info.ClaimUID != claim.UID:
			return nil, fmt.Errorf("old ResourceClaim with same name %s and different UID %s still exists (previous pod force-deleted?!)", claim.Name, info.ClaimUID)
		case info.unpreparing:
			return nil, fmt.Errorf("ResourceClaim %s is being unprepared", claim.Name)
		}
	}
	var left []Claim
	for _, claim := range claims {
		info := c.infos[keyOf(claim.ResourceClaim)]
		if info == nil {
			info = &Info{ClaimUID: claim.UID, ClaimName: claim.Name, Namespace: claim.Namespace, PodUIDs: sets.New[string](), DriverState: map[string]DriverState{}}
			for _, driver := range claim.Drivers {
				info.DriverState[driver] = DriverState{}
			}
			c.infos[info.Key()] = info
		}
		info.PodUIDs.Insert(string(pod))
		if !info.prepared {
			left = append(left, claim)
		}
	}
	return left, c.storeCheckpoint()
}

// SetDevices notes what a driver has prepared of a claim. What takes more room than any allocation
// needs is an error, so that one driver cannot make the checkpoint too large to be read.
func (c *Cache) SetDevices(claim Claim, driver string, devices []Device) error {
	encoded, err := json.Marshal(devices)
	if err == nil && len(encoded) > maxAnswer {
		err = fmt.Errorf("%d bytes for ResourceClaim %s, of which the checkpoint keeps at most %d", len(encoded), claim.Name, maxAnswer)
	}
	if err != nil {
		return fmt.Errorf("NodePrepareResources returned %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if info := c.infos[keyOf(claim.ResourceClaim)]; info != nil {
		info.DriverState[driver] = DriverState{devices}
	}
	return nil
}

// SetPrepared notes that all drivers have prepared claims.
func (c *Cache) SetPrepared(claims []Claim) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, claim := range claims {
		if info := c.infos[keyOf(claim.ResourceClaim)]; info != nil {
			info.prepared = true
		}
	}
	return c.storeCheckpoint()
}

// Prepared reports whether a claim is prepared for a Pod.
func (c *Cache) Prepared(pod types.UID, claim *resourcev1.ResourceClaim) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	info := c.infos[keyOf(claim)]
	return info != nil && info.ClaimUID == claim.UID && info.prepared && info.PodUIDs.Has(string(pod))
}

// Pods are those that claims are, or are being, prepared for.
func (c *Cache) Pods() sets.Set[types.UID] {
	c.mu.Lock()
	defer c.mu.Unlock()
	pods := sets.New[types.UID]()
	for _, info := range c.infos {
		for pod := range info.PodUIDs {
			pods.Insert(types.UID(pod))
		}
	}
	return pods
}

// Leave has a Pod no longer use its claims, and returns those of which it was the last user:
// their drivers are to be asked to unprepare them.
func (c *Cache) Leave(pod types.UID) []Info {
	c.mu.Lock()
	defer c.mu.Unlock()
	var last []Info
	for _, info := range c.infos {
		switch {
		case !info.PodUIDs.Has(string(pod)):
		case info.PodUIDs.Len() > 1:
			info.PodUIDs.Delete(string(pod))
		default:
			info.unpreparing = true
			last = append(last, *info)
		}
	}
	slices.SortFunc(last, func(a, b Info) int { return strings.Compare(a.Key().String(), b.Key().String()) })
	return last
}

// SetUnprepared forgets claims that drivers have unprepared. Where err says that they have not, they
// are as before.
func (c *Cache) SetUnprepared(claims []Info, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, claim := range claims {
		info := c.infos[claim.Key()]
		switch {
		case info == nil || info.ClaimUID != claim.ClaimUID:
		case err != nil:
			info.unpreparing = false
		default:
			delete(c.infos, claim.Key())
		}
	}
	return errors.Join(err, c.storeCheckpoint())
}

// Devices are those that a driver has prepared of a claim.
func (c *Cache) Devices(claim *resourcev1.ResourceClaim, driver string) []Device {
	c.mu.Lock()
	defer c.mu.Unlock()
	info := c.infos[keyOf(claim)]
	if info == nil || info.ClaimUID != claim.UID {
		return nil
	}
	return info.DriverState[driver].Devices
}

// DeviceFor is what a driver has returned for an allocated device, or nil. One that names no
// requests is for all.
func (c *Cache) DeviceFor(claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) *Device {
	request := resourceclaim.BaseRequestRef(result.Request)
	for _, device := range c.Devices(claim, result.Driver) {
		sameShare := device.ShareID == nil || result.ShareID != nil && *device.ShareID == *result.ShareID
		named := len(device.RequestNames) == 0 || slices.Contains(device.RequestNames, request)
		if device.PoolName == result.Pool && device.DeviceName == result.Device && sameShare && named {
			return &device
		}
	}
	return nil
}

// CDIDevices are the CDI devices that a driver has returned for an allocated device. It
// returns false where the driver has not answered.
func (c *Cache) CDIDevices(claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) ([]string, bool) {
	device := c.DeviceFor(claim, result)
	if device == nil {
		return nil, false
	}
	return device.CDIDeviceIDs, true
}

// Restart forgets what a kubelet forgets that restarts.
func (c *Cache) Restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, info := range c.infos {
		info.prepared = false
	}
}

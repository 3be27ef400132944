package claiminfo

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
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
	// PodUIDs are the Pods that the claim is prepared or being prepared for.
	PodUIDs sets.Set[string]
	// DriverState has an entry for each driver that is asked to prepare or to unprepare the claim.
	DriverState map[string]DriverState

	// isPrepared is lost at a restart, after which drivers are asked once more.
	isPrepared bool
	// isUnpreparing says that drivers are being asked to unprepare the claim.
	isUnpreparing bool
}

// DriverState has the devices that a driver has prepared, and what the driver is not asked for.
type DriverState struct {
	Devices            []Device
	SkipNodeOperations []resourcev1.SkipNodeOperation `json:"skipNodeOperations,omitempty"`
}

// Device is what a driver has returned for a device.
type Device struct {
	PoolName, DeviceName string
	ShareID              *types.UID
	RequestNames         []string
	CDIDeviceIDs         []string
}

// Claim is a claim to prepare, with the drivers to ask for it, now or when it is unprepared.
type Claim struct {
	*resourcev1.ResourceClaim
	Drivers map[string]DriverState
}

// Cache has the claims of one node. It writes each change to its file. It ends with the ownership of the node, since
// another replica may write the file then.
type Cache struct {
	file string

	mu    sync.Mutex
	infos map[types.NamespacedName]*Info
	// stored is the file as it was read or written last, or nil if there was none.
	stored fs.FileInfo
}

// Skips reports whether the driver is not asked for an operation.
func (s DriverState) Skips(operation resourcev1.SkipNodeOperation) bool {
	return slices.Contains(s.SkipNodeOperations, operation)
}

// Key returns namespace and name of the claim.
func (i *Info) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: i.Namespace, Name: i.ClaimName}
}

func keyOf(claim *resourcev1.ResourceClaim) types.NamespacedName {
	return types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}
}

// Join records that claims are being prepared for a Pod, and returns those that are not prepared yet.
func (c *Cache) Join(pod types.UID, claims []Claim) ([]Claim, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, claim := range claims {
		info := c.infos[keyOf(claim.ResourceClaim)]
		switch {
		case info == nil:
		case info.ClaimUID != claim.UID:
			return nil, fmt.Errorf("old ResourceClaim with same name %s and different UID %s still exists (previous pod force-deleted?!)", claim.Name, info.ClaimUID)
		case info.isUnpreparing:
			return nil, fmt.Errorf("ResourceClaim %s is being unprepared", claim.Name)
		}
	}
	var unprepared []Claim
	for _, claim := range claims {
		info := c.infos[keyOf(claim.ResourceClaim)]
		if info == nil {
			info = &Info{ClaimUID: claim.UID, ClaimName: claim.Name, Namespace: claim.Namespace, PodUIDs: sets.New[string](), DriverState: maps.Clone(claim.Drivers)}
			c.infos[info.Key()] = info
		}
		info.PodUIDs.Insert(string(pod))
		if !info.isPrepared {
			unprepared = append(unprepared, claim)
		}
	}
	return unprepared, c.writeCheckpoint()
}

// SetDevices records what a driver has prepared of a claim. An answer that is larger than any allocation needs is an error,
// so that no driver can make the checkpoint too large to be read.
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
		state := info.DriverState[driver]
		state.Devices = devices
		info.DriverState[driver] = state
	}
	return nil
}

// SetPrepared records that all drivers have prepared claims.
func (c *Cache) SetPrepared(claims []Claim) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, claim := range claims {
		if info := c.infos[keyOf(claim.ResourceClaim)]; info != nil {
			info.isPrepared = true
		}
	}
	return c.writeCheckpoint()
}

// Prepared reports whether a claim is prepared for a Pod.
func (c *Cache) Prepared(pod types.UID, claim *resourcev1.ResourceClaim) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	info := c.infos[keyOf(claim)]
	return info != nil && info.ClaimUID == claim.UID && info.isPrepared && info.PodUIDs.Has(string(pod))
}

// Info returns what is known of a claim, or nil.
func (c *Cache) Info(claim types.NamespacedName) *Info {
	c.mu.Lock()
	defer c.mu.Unlock()
	info := c.infos[claim]
	if info == nil {
		return nil
	}
	known := *info
	known.PodUIDs, known.DriverState = info.PodUIDs.Clone(), maps.Clone(info.DriverState)
	return &known
}

// Pods returns the Pods that claims are prepared or being prepared for.
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

// Leave removes a Pod from the users of its claims. It keeps and returns the claims of which it is the last user, which
// drivers have to unprepare.
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
			info.isUnpreparing = true
			last = append(last, *info)
		}
	}
	slices.SortFunc(last, func(a, b Info) int { return strings.Compare(a.Key().String(), b.Key().String()) })
	return last
}

// SetUnprepared forgets claims that drivers have unprepared. If err says that they failed to, the claims stay as they are.
func (c *Cache) SetUnprepared(claims []Info, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, claim := range claims {
		info := c.infos[claim.Key()]
		switch {
		case info == nil || info.ClaimUID != claim.ClaimUID:
		case err != nil:
			info.isUnpreparing = false
		default:
			delete(c.infos, claim.Key())
		}
	}
	return errors.Join(err, c.writeCheckpoint())
}

// Devices lists the devices of a claim that a driver has prepared.
func (c *Cache) Devices(claim *resourcev1.ResourceClaim, driver string) []Device {
	c.mu.Lock()
	defer c.mu.Unlock()
	info := c.infos[keyOf(claim)]
	if info == nil || info.ClaimUID != claim.UID {
		return nil
	}
	return info.DriverState[driver].Devices
}

// DeviceFor returns what a driver has returned for an allocated device, or nil. A device without request names belongs to
// all requests.
func (c *Cache) DeviceFor(claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) *Device {
	request := resourceclaim.BaseRequestRef(result.Request)
	for _, device := range c.Devices(claim, result.Driver) {
		isSameShare := device.ShareID == nil || result.ShareID != nil && *device.ShareID == *result.ShareID
		isRequested := len(device.RequestNames) == 0 || slices.Contains(device.RequestNames, request)
		if device.PoolName == result.Pool && device.DeviceName == result.Device && isSameShare && isRequested {
			return &device
		}
	}
	return nil
}

// CDIDevices lists the CDI devices that a driver has returned for an allocated device. It returns false if the driver has
// not returned the device.
func (c *Cache) CDIDevices(claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) ([]string, bool) {
	device := c.DeviceFor(claim, result)
	if device == nil {
		return nil, false
	}
	return device.CDIDeviceIDs, true
}

// Restart forgets what a kubelet forgets when it restarts.
func (c *Cache) Restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, info := range c.infos {
		info.isPrepared = false
	}
}

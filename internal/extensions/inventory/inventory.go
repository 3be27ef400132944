package inventory

import (
	"encoding/json"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Inventory is what there is at one time.
type Inventory struct {
	Drivers []Driver `json:"drivers"`
	Items   []*Item  `json:"items"`
	// Gone are devices that claims have and no slice publishes any more. They are in no
	// pool, and no state counts them.
	Gone []GoneDevice `json:"gone,omitempty"`
	// Unseen says what could not be read, if anything.
	Unseen string `json:"unseen,omitempty"`
	// Kinds are those of the pools, by their ids.
	Kinds map[string]*Kind `json:"-"`
}

// Item is a node with its pools, or a pool that nodes share.
type Item struct {
	// ID is an item's own.
	ID string `json:"id"`
	// Node is left out for a pool that nodes share.
	Node string `json:"node,omitempty"`
	// NotReady reports whether the node is not Ready. All its devices that no claim has are Blocked.
	NotReady bool `json:"notReady,omitempty"`
	// Pools are empty for a node on which nothing is published.
	Pools []Pool `json:"pools"`
}

// Pool is a pool at its newest generation.
type Pool struct {
	Driver     string `json:"driver"`
	Name       string `json:"name"`
	Generation int64  `json:"generation"`
	// Slices are those that there are, and SliceCount how many there are to be. The
	// scheduler allocates nothing from a pool that has not as many.
	Slices     int64 `json:"slices"`
	SliceCount int64 `json:"resourceSliceCount"`
	Usage      Usage `json:"usage"`
	// Kind is the id of a kind. Pools of one kind have the same devices in the same order.
	Kind    string   `json:"kind"`
	Devices []Device `json:"devices"`
}

// Complete reports whether all slices of the pool are there.
func (p *Pool) Complete() bool {
	return p.Slices == p.SliceCount
}

// Device is a published device.
type Device struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// Shared marks a device of which several claims can have a share.
	Shared bool `json:"shared,omitempty"`
	// Used is how much of a shared device is taken, from 0 to 1: the largest part of
	// any of its capacities.
	Used float32 `json:"used,omitempty"`
	// BlockedBy names what keeps claims from the device though none has it, or what a
	// shared device has no more of.
	BlockedBy string `json:"blockedBy,omitempty"`
	// Claims are those that have the device. A device may be shared.
	Claims []Claim `json:"claims,omitempty"`
	Taints []Taint `json:"taints,omitempty"`
}

// Available reports whether the scheduler can give the device, or a share of it, to
// one more claim, which tolerates no taints.
func (d *Device) Available() bool {
	return d.BlockedBy == "" && d.State != Tainted && (d.Shared || d.State == Free)
}

// isTaken reports whether a claim has the device. One with admin access leaves it to others.
func (d *Device) isTaken() bool {
	for i := range d.Claims {
		if !d.Claims[i].AdminAccess {
			return true
		}
	}
	return false
}

// Claim is a ResourceClaim that has a device.
type Claim struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// ShareID tells shares of one device apart.
	ShareID string `json:"shareID,omitempty"`
	// Consumed is what a share takes of the capacities of the device.
	Consumed map[resourcev1.QualifiedName]resource.Quantity `json:"consumedCapacity,omitempty"`
	// Failure says why the device is not prepared for the claim, or is not ready.
	Failure string `json:"failure,omitempty"`
	// Pods are those of the claim's namespace that it is reserved for.
	Pods []string `json:"pods,omitempty"`
	// Prepared reports whether the device is prepared for the claim.
	Prepared bool `json:"prepared"`
	// AdminAccess says that the claim only observes the device, which others may use.
	AdminAccess bool `json:"adminAccess,omitempty"`
}

// Taint is a taint of a device.
type Taint struct {
	Key       string                       `json:"key"`
	Value     string                       `json:"value,omitempty"`
	Effect    resourcev1.DeviceTaintEffect `json:"effect"`
	TimeAdded time.Time                    `json:"timeAdded"`
	// Rule is the DeviceTaintRule that taints the device, and empty for a taint that the
	// driver has published.
	Rule string `json:"rule,omitempty"`
}

// Driver sums up the pools of a driver.
type Driver struct {
	Name            string `json:"name"`
	Pools           int    `json:"pools"`
	IncompletePools int    `json:"incompletePools"`
	Usage           Usage  `json:"usage"`
	States          Counts `json:"states"`
	// Gone counts the devices that claims have and no slice publishes any more.
	Gone int `json:"gone,omitempty"`
}

// Usage is how much is taken, in whole devices. Devices that draw on a counter set
// are parts of one device, however many there are. How much of that is taken is the
// part of the counter named memory, or else of the counter of which the most is
// taken. Every other device counts as one, and a shared one as much as is taken of it.
type Usage struct {
	Used  float64 `json:"used"`
	Total float64 `json:"total"`
}

// Ratio is the part of all devices that is taken, from 0 to 1.
func (u Usage) Ratio() float64 {
	if u.Total == 0 {
		return 0
	}
	return roundPart(u.Used / u.Total)
}

// Add adds another Usage.
func (u *Usage) Add(other Usage) {
	u.Used = roundPart(u.Used + other.Used)
	u.Total += other.Total
}

// State is the state of a device. It has one at a time: the first of
// Tainted, Failing, Prepared, Allocated, Blocked and Free that is true of it.
type State uint8

// The states.
const (
	// Free is a device that no claim has, and that a claim can get.
	Free State = iota
	// Blocked is one that no claim has and none can get: others have the counters that
	// it needs, or its node is not Ready.
	Blocked
	// Allocated is a device that a claim has.
	Allocated
	// Prepared is one that is prepared for a claim.
	Prepared
	// Failing is one that cannot be prepared for a claim, or is not ready.
	Failing
	// Tainted is one with a taint that keeps Pods away: NoSchedule or NoExecute.
	Tainted

	states
)

// Gone is the state of a device that claims have and that no slice publishes any more.
// Counts leave it out: they are of what is published.
const Gone = states

var stateNames = [...]string{"free", "blocked", "allocated", "prepared", "failing", "tainted", "gone"}

// String is the state's name.
func (s State) String() string { return stateNames[s] }

// MarshalText implements encoding.TextMarshaler.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Counts are the numbers of devices in each state.
type Counts [states]int

// MarshalJSON implements json.Marshaler: an object with a field for each state.
func (c Counts) MarshalJSON() ([]byte, error) {
	byState := map[State]int{}
	for state, count := range c {
		byState[State(state)] = count
	}
	return json.Marshal(byState)
}

func (d *Driver) addPool(pool *Pool) {
	d.Pools++
	if !pool.Complete() {
		d.IncompletePools++
	}
	for i := range pool.Devices {
		d.States[pool.Devices[i].State]++
	}
	d.Usage.Add(pool.Usage)
}

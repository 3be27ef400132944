// Package inventory reports the state of each published device: whether it is
// free, allocated, prepared or tainted, and who uses it. It keeps nothing: each
// inventory is taken from the caches on request.
package inventory

import (
	"encoding/json"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
)

// Inventory is what there is at one time.
type Inventory struct {
	Drivers []Driver `json:"drivers"`
	Items   []*Item  `json:"items"`
}

// Item is a node with its pools, or a pool that nodes share.
type Item struct {
	// ID is an item's own.
	ID string `json:"id"`
	// Node is left out for a pool that nodes share.
	Node string `json:"node,omitempty"`
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
	Slices     int64    `json:"slices"`
	SliceCount int64    `json:"resourceSliceCount"`
	Devices    []Device `json:"devices"`
}

// Complete reports whether all slices of the pool are there.
func (p *Pool) Complete() bool {
	return p.Slices == p.SliceCount
}

// Device is a published device.
type Device struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// Claims are those that have the device. A device may be shared.
	Claims []Claim `json:"claims,omitempty"`
	Taints []Taint `json:"taints,omitempty"`
}

// Claim is a ResourceClaim that has a device.
type Claim struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Prepared reports whether the device is prepared for the claim.
	Prepared bool `json:"prepared"`
	// ShareID tells shares of one device apart.
	ShareID string `json:"shareID,omitempty"`
	// AdminAccess says that the claim only observes the device, which others may use.
	AdminAccess bool `json:"adminAccess,omitempty"`
	// Pods are those of the claim's namespace that it is reserved for.
	Pods []string `json:"pods,omitempty"`
}

// Taint is a taint of a device.
type Taint struct {
	Key       string                       `json:"key"`
	Value     string                       `json:"value,omitempty"`
	Effect    resourcev1.DeviceTaintEffect `json:"effect"`
	TimeAdded time.Time                    `json:"timeAdded"`
}

// Driver sums up the pools of a driver.
type Driver struct {
	Name            string `json:"name"`
	Pools           int    `json:"pools"`
	IncompletePools int    `json:"incompletePools"`
	States          Counts `json:"states"`
}

// State is the state of a device. It has one at a time: the first of
// Tainted, Prepared, Allocated and Free that is true of it.
type State uint8

// The states.
const (
	// Free is a device that no claim has.
	Free State = iota
	// Allocated is a device that a claim has.
	Allocated
	// Prepared is one that is prepared for a claim.
	Prepared
	// Tainted is one with a taint that keeps Pods away: NoSchedule or NoExecute.
	Tainted

	states
)

var stateNames = [states]string{"free", "allocated", "prepared", "tainted"}

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

func (d *Driver) add(pool *Pool) {
	d.Pools++
	if !pool.Complete() {
		d.IncompletePools++
	}
	for i := range pool.Devices {
		d.States[pool.Devices[i].State]++
	}
}

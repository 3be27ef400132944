package plan

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kwok-dra/kwok-dra/pkg/observe/facts"
)

// Entries are the entries of status.devices that a claim should show.
type Entries struct {
	Claim   *resourcev1.ResourceClaim
	Devices []resourcev1.AllocatedDeviceStatus
	// NamePods says that the entries name the claim's Pods, and change with them.
	NamePods bool
}

// Shown reports whether the claim shows the entries. An entry that exists is not written again, unless it
// names Pods: a driver prepares a claim once.
func (e *Entries) Shown() bool {
	lacks := func(want resourcev1.AllocatedDeviceStatus) bool {
		entry := facts.EntryOf(e.Claim, facts.EntryID(&want))
		return entry == nil ||
			e.NamePods && (!sameData(entry.Data, want.Data) || !apiequality.Semantic.DeepEqual(entry.NetworkData, want.NetworkData))
	}
	return len(e.Devices) == 0 || facts.ManagedBy(e.Claim, facts.Manager) && !slices.ContainsFunc(e.Devices, lacks)
}

// sameData compares JSON by content, since the API server does not keep the order of keys.
func sameData(a, b *runtime.RawExtension) bool {
	if a == nil || b == nil {
		return a == b
	}
	var before, after any
	return bytes.Equal(a.Raw, b.Raw) ||
		json.Unmarshal(a.Raw, &before) == nil && json.Unmarshal(b.Raw, &after) == nil && reflect.DeepEqual(before, after)
}

package record

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/claiminfo"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// world is what there is to record.
type world struct {
	node *corev1.Node
	// slices are those of real drivers on the node.
	slices []*resourcev1.ResourceSlice
	claims []resourcev1.ResourceClaim
	// kept is what drivers have returned for claims, or nil if that is not known.
	kept *claiminfo.Cache
	cdi  map[string][]any
}

// readCluster reads the node, its slices of real drivers and all claims.
func readCluster(ctx context.Context, client kubernetes.Interface, node, driver string) (*world, error) {
	found, err := client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get node %s: %w", node, err)
	}
	selector := fields.Set{resourcev1.ResourceSliceSelectorNodeName: node}
	if driver != "" {
		selector[resourcev1.ResourceSliceSelectorDriver] = driver
	}
	list, err := client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{FieldSelector: selector.String()})
	if err != nil {
		return nil, fmt.Errorf("list slices of node %s: %w", node, err)
	}
	w := &world{node: found}
	for i := range list.Items {
		if list.Items[i].Labels[v1alpha1.ManagedByLabel] != v1alpha1.ManagedByValue {
			w.slices = append(w.slices, &list.Items[i])
		}
	}
	claims, err := client.ResourceV1().ResourceClaims(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list claims: %w", err)
	}
	w.claims = claims.Items
	return w, nil
}

// readCheckpoint reads the checkpoint in the folder of the node.
func (w *world) readCheckpoint(directory string) error {
	kept, _, err := claiminfo.Find(directory, w.node)
	if err != nil {
		return fmt.Errorf("read --plugins-dir: %w", err)
	}
	w.kept = kept
	return nil
}

// devicesByName returns those of a pool.
func (w *world) devicesByName(driver, pool string) map[string]*resourcev1.Device {
	devices := map[string]*resourcev1.Device{}
	for _, slice := range w.slices {
		if slice.Spec.Driver == driver && slice.Spec.Pool.Name == pool {
			for i := range slice.Spec.Devices {
				devices[slice.Spec.Devices[i].Name] = &slice.Spec.Devices[i]
			}
		}
	}
	return devices
}

// listPrepared returns the devices of a pool that claims have, in the order of claims.
func (w *world) listPrepared(driver, pool string) []*prepared {
	devices := w.devicesByName(driver, pool)
	var all []*prepared
	for i := range w.claims {
		claim := &w.claims[i]
		if claim.Status.Allocation == nil || len(claim.Status.ReservedFor) == 0 {
			continue
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			if result.Driver != driver || result.Pool != pool || devices[result.Device] == nil {
				continue
			}
			p := &prepared{node: w.node, claim: claim, result: &result, device: devices[result.Device], entry: findEntry(claim, &result)}
			if w.addReturned(p) {
				all = append(all, p)
			}
		}
	}
	return all
}

// findEntry returns what the driver has written of an allocated device, or nil.
func findEntry(claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) *resourcev1.AllocatedDeviceStatus {
	for i := range claim.Status.Devices {
		entry := &claim.Status.Devices[i]
		sameShare := entry.ShareID == nil && result.ShareID == nil || entry.ShareID != nil && result.ShareID != nil && *entry.ShareID == string(*result.ShareID)
		if entry.Driver == result.Driver && entry.Pool == result.Pool && entry.Device == result.Device && sameShare {
			return entry
		}
	}
	return nil
}

// addReturned adds what the driver has returned to the kubelet, and reports whether it may have
// prepared the device.
func (w *world) addReturned(p *prepared) bool {
	if w.kept == nil {
		return true
	}
	device := w.kept.DeviceFor(p.claim, p.result)
	if device == nil {
		return false
	}
	p.ids = slices.Clone(device.CDIDeviceIDs)
	for _, id := range p.ids {
		if edits, known := w.cdi[id]; known {
			p.edits = append(p.edits, map[string]any{"id": id, "containerEdits": edits})
		}
	}
	return true
}

package checkdriver

import (
	"context"
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// pools are those that the driver publishes for the node.
type pools struct {
	runner

	// shared are the devices that claims can share, and what one consumes of them.
	shared map[device]map[resourcev1.QualifiedName]resource.Quantity
}

// nodeSliceOptions selects the slices of a driver on the node, or of all drivers.
func (p *pools) nodeSliceOptions(driver string) metav1.ListOptions {
	selector := fields.Set{resourcev1.ResourceSliceSelectorNodeName: p.name}
	if driver != "" {
		selector[resourcev1.ResourceSliceSelectorDriver] = driver
	}
	return metav1.ListOptions{FieldSelector: selector.String()}
}

// deleteSlices deletes the slices of a driver on the node, or of all drivers.
func (p *pools) deleteSlices(ctx context.Context, driver string) error {
	return ignoreGone(p.client.ResourceV1().ResourceSlices().DeleteCollection(ctx, metav1.DeleteOptions{}, p.nodeSliceOptions(driver)))
}

// listPublished returns the slices of the driver on the node, by name. Of each pool, it has those of the highest
// generation.
func (p *pools) listPublished(ctx context.Context) ([]resourcev1.ResourceSlice, error) {
	list, err := p.client.ResourceV1().ResourceSlices().List(ctx, p.nodeSliceOptions(p.driver))
	if err != nil {
		return nil, fmt.Errorf("list slices of driver %s: %w", p.driver, err)
	}
	return newestGeneration(list.Items), nil
}

// newestGeneration are the slices of the highest generation of each pool, by name.
func newestGeneration(all []resourcev1.ResourceSlice) []resourcev1.ResourceSlice {
	highest := map[string]int64{}
	for i := range all {
		pool := all[i].Spec.Pool
		highest[pool.Name] = max(highest[pool.Name], pool.Generation)
	}
	all = slices.DeleteFunc(all, func(slice resourcev1.ResourceSlice) bool {
		return slice.Spec.Pool.Generation < highest[slice.Spec.Pool.Name]
	})
	slices.SortFunc(all, func(a, b resourcev1.ResourceSlice) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// awaitDevices waits until the driver has published anything, and returns the devices for
// claims.
func (p *pools) awaitDevices(ctx context.Context) (free []device, err error) {
	err = waitUntil(ctx, func() (string, error) {
		found, err := p.listPublished(ctx)
		free, p.shared = exclusiveDevices(found), sharedDevices(found)
		if err != nil || len(found) > 0 {
			return "", err
		}
		return p.describeMissing(), nil
	})
	return free, err
}

func (p *pools) describeMissing() string {
	return fmt.Sprintf("driver %s has no ResourceSlice with spec.nodeName %s", p.driver, p.name)
}

// deviceNames are all devices in slices, in a fixed order.
func deviceNames(published []resourcev1.ResourceSlice) []device {
	var all []device
	for i := range published {
		for j := range published[i].Spec.Devices {
			all = append(all, device{published[i].Spec.Pool.Name, published[i].Spec.Devices[j].Name})
		}
	}
	slices.SortFunc(all, func(a, b device) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// findIncomplete says what is wrong with the slices of a node.
func findIncomplete(published []resourcev1.ResourceSlice, node metav1.Object) (problems []string) {
	perPool := map[string]int64{}
	known := map[device]string{}
	for i := range published {
		slice := &published[i]
		pool := slice.Spec.Pool.Name
		perPool[pool]++
		if !slices.ContainsFunc(slice.OwnerReferences, func(owner metav1.OwnerReference) bool {
			return owner.Kind == "Node" && owner.Name == node.GetName() && owner.UID == node.GetUID()
		}) {
			problems = append(problems, fmt.Sprintf("slice %s: no owner reference to node %s", slice.Name, node.GetName()))
		}
		for j := range slice.Spec.Devices {
			d := device{pool, slice.Spec.Devices[j].Name}
			if other, twice := known[d]; twice {
				problems = append(problems, fmt.Sprintf("device %s is in slices %s and %s", d, other, slice.Name))
			}
			known[d] = slice.Name
		}
	}
	for i := range published {
		pool := published[i].Spec.Pool
		if perPool[pool.Name] != pool.ResourceSliceCount {
			problems = append(problems, fmt.Sprintf("slice %s: pool %s has %d slices of generation %d, and resourceSliceCount %d",
				published[i].Name, pool.Name, perPool[pool.Name], pool.Generation, pool.ResourceSliceCount))
		}
	}
	return problems
}

// findRewritten says what has been written to slices without need, or is nil.
func findRewritten(before, now []resourcev1.ResourceSlice) error {
	if len(before) != len(now) {
		return fmt.Errorf("there were %d slices, and now there are %d", len(before), len(now))
	}
	for i := range before {
		was, is := &before[i], &now[i]
		switch {
		case was.UID != is.UID:
			return fmt.Errorf("slice %s was replaced by %s", was.Name, is.Name)
		case was.Spec.Pool.Generation != is.Spec.Pool.Generation:
			return fmt.Errorf("slice %s: the generation of pool %s was %d and is %d", is.Name, is.Spec.Pool.Name, was.Spec.Pool.Generation, is.Spec.Pool.Generation)
		case !apiequality.Semantic.DeepEqual(was.Spec, is.Spec):
			return fmt.Errorf("slice %s has changed", is.Name)
		}
	}
	return nil
}

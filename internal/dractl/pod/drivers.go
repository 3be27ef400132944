package pod

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/internal/claims/templates"
	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/dractl/fleet"
	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview"
	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview/injections"
	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/claiminfo"
	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/root"
	"github.com/kwok-dra/kwok-dra/internal/extensions/util/untrusted"
)

// drivers are those of a node: real ones by what they have returned, others by their
// templates.
type drivers struct {
	*injections.Templates

	// returned is what real drivers have returned, or nil where that is not known.
	returned *claiminfo.Cache
	// folder has the files of the node.
	folder *root.Root
	// specs is the folder of their CDI specs.
	specs string
	// published are the devices of the node's own pools.
	published map[device]*resourcev1.Device
	// unknown are the drivers whose injections are not known.
	unknown sets.Set[string]
}

// device names a device in the cluster.
type device struct{ driver, pool, name string }

func (c *command) readDrivers(ctx context.Context, client kubernetes.Interface, set *config.Set, node *corev1.Node) (*drivers, error) {
	pods, err := fleet.Live(ctx, client, set)
	if err != nil {
		return nil, err
	}
	d := &drivers{Templates: &injections.Templates{Driver: templates.New(set, node, templates.Slices{}, pods(node).BindTemplate)}, published: map[device]*resourcev1.Device{}, unknown: sets.New[string]()}
	if c.pluginsDir != "" {
		cache, folder, err := claiminfo.Find(c.pluginsDir, node)
		if err != nil {
			return nil, fmt.Errorf("read --plugins-dir: %w", err)
		}
		d.returned, d.folder, d.specs = cache, folder, cmp.Or(c.cdiFolder, folder.CDI())
	}
	own := fields.OneTermEqualSelector(resourcev1.ResourceSliceSelectorNodeName, node.Name).String()
	list, err := client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{FieldSelector: own})
	if err != nil {
		return nil, fmt.Errorf("list slices of node %s: %w", node.Name, err)
	}
	for i := range list.Items {
		spec := &list.Items[i].Spec
		for k := range spec.Devices {
			d.published[device{spec.Driver, spec.Pool.Name, spec.Devices[k].Name}] = &spec.Devices[k]
		}
	}
	return d, nil
}

// Device is an allocated device as it is published, or else as a template has it.
func (d *drivers) Device(result *resourcev1.DeviceRequestAllocationResult) *resourcev1.Device {
	if published := d.published[device{result.Driver, result.Pool, result.Device}]; published != nil {
		return published
	}
	return d.Templates.Device(result)
}

// Injections lists what is injected by templates.
func (d *drivers) Injections(pod *corev1.Pod, claim *resourcev1.ResourceClaim, results []*resourcev1.DeviceRequestAllocationResult) ([]containerview.Injection, error) {
	for _, result := range results {
		if !d.Has(result.Driver) {
			d.unknown.Insert(result.Driver)
		}
	}
	return d.Templates.Injections(pod, claim, results)
}

// maxMetadata limits a file with device metadata, which has some kilobytes.
const maxMetadata = 1 << 20

// readMetadata reads a file that a real driver has on the host of the node.
func (d *drivers) readMetadata(path string) (string, error) {
	content, err := untrusted.ReadFileIn(d.folder.Path, d.folder.OnHost(path), maxMetadata)
	return string(content), err
}

// Package file is a DRA driver whose devices are files. It publishes them, writes the names of
// the Pods that a device is for to its file when it prepares it, and removes the file when it
// unprepares it. All that it needs of a machine is a folder.
package file

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/dynamic-resource-allocation/api/metadata/v1alpha1"
	"k8s.io/dynamic-resource-allocation/api/metadata/v1beta1"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

// Options are what a Driver works with.
type Options struct {
	Client kubernetes.Interface
	// Name is the name of the driver, and Node that of its node.
	Name, Node string
	// Registry and Plugins are plugins_registry and plugins below the kubelet's root directory.
	Registry, Plugins string
	// CDI is the folder of CDI specs.
	CDI string
	// Files is the folder of the files on the host, and Host is where the driver sees the root of the
	// host. Without them the files are among those of the plugin.
	Files, Host string
	// Devices is how many there are. Without any, nothing is published.
	Devices int
	// Report has the status of claims show the file of each device.
	Report bool
	// Shared has several claims get the same device.
	Shared bool
	// Exclusive refuses to prepare a device for a claim that another one has, unless they share it.
	Exclusive bool
	// Metadata has containers get files with the attributes of their devices, besides those of the devices.
	Metadata bool
	// Instance tells apart those of a rolling update; empty without one.
	Instance string
	// Intercept, if there is one, sees the calls of the plugin.
	Intercept grpc.UnaryServerInterceptor
	// Health, if there is one, reports the health of devices.
	Health func(ctx context.Context, reports chan<- kubeletplugin.DeviceHealthReport) error
	// Plugin are further options of the plugin, which win.
	Plugin []kubeletplugin.Option
}

// Driver is a plugin that runs.
type Driver struct {
	*kubeletplugin.Helper
	Options

	mu sync.Mutex
}

// Start registers the plugin, and publishes its devices.
func Start(ctx context.Context, o Options) (*Driver, error) {
	d := &Driver{Options: o}
	for _, folder := range []string{d.filesFolder(), filepath.Join(o.Plugins, o.Name), o.CDI} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, err
		}
	}
	options := []kubeletplugin.Option{
		kubeletplugin.KubeClient(o.Client),
		kubeletplugin.DriverName(o.Name),
		kubeletplugin.NodeName(o.Node),
		kubeletplugin.RegistrarDirectoryPath(o.Registry),
		kubeletplugin.PluginDataDirectoryPath(filepath.Join(o.Plugins, o.Name)),
		kubeletplugin.HealthService(o.Health != nil),
	}
	if o.Instance != "" {
		options = append(options, kubeletplugin.RollingUpdate(types.UID(o.Instance)))
	}
	if o.Intercept != nil {
		options = append(options, kubeletplugin.GRPCInterceptor(o.Intercept))
	}
	if o.Metadata {
		options = append(options, kubeletplugin.CDIDirectory(o.CDI),
			kubeletplugin.EnableDeviceMetadata(true, []schema.GroupVersion{v1beta1.SchemeGroupVersion, v1alpha1.SchemeGroupVersion}))
	}
	var err error
	if d.Helper, err = kubeletplugin.Start(ctx, d, append(options, o.Plugin...)...); err != nil {
		return nil, err
	}
	if o.Devices == 0 {
		return d, nil
	}
	if err := d.PublishResources(ctx, d.driverResources()); err != nil {
		d.Stop()
		return nil, err
	}
	return d, nil
}

// filesFolder has the files.
func (d *Driver) filesFolder() string {
	if d.Files != "" {
		return filepath.Join(d.Host, d.Files)
	}
	return filepath.Join(d.Plugins, d.Name, "files")
}

// onHost is what the host calls the file of a device.
func (d *Driver) onHost(device string) string {
	if d.Files != "" {
		return filepath.Join(d.Files, device)
	}
	return d.File(device)
}

// File is the file of a device.
func (d *Driver) File(device string) string { return filepath.Join(d.filesFolder(), device) }

func (d *Driver) driverResources() resourceslice.DriverResources {
	slice := resourceslice.Slice{}
	for i := range d.Devices {
		device := resourcev1.Device{Name: fmt.Sprint("file-", i), Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}}
		for name, value := range attributesOf(i) {
			device.Attributes[resourcev1.QualifiedName(name)] = value
		}
		if d.Shared {
			device.AllowMultipleAllocations = new(true)
		}
		slice.Devices = append(slice.Devices, device)
	}
	return resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{d.Node: {Slices: []resourceslice.Slice{slice}}}}
}

// attributesOf are the attributes of the device with an index.
func attributesOf(index int) map[string]resourcev1.DeviceAttribute {
	return map[string]resourcev1.DeviceAttribute{"index": {IntValue: new(int64(index))}, "name": {StringValue: new(fmt.Sprint("file-", index))}}
}

// indexOf is the index of a device.
func indexOf(device string) (index int, err error) {
	_, err = fmt.Sscanf(device, "file-%d", &index)
	return index, err
}

// PrepareResourceClaims implements kubeletplugin.DRAPlugin.
func (d *Driver) PrepareResourceClaims(ctx context.Context, claims []*resourcev1.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	results := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		devices, err := d.prepareClaim(claim)
		if err == nil && d.Report {
			err = d.writeClaimStatus(ctx, claim)
		}
		results[claim.UID] = kubeletplugin.PrepareResult{Devices: devices, Err: err}
	}
	return results, nil
}

func (d *Driver) prepareClaim(claim *resourcev1.ResourceClaim) ([]kubeletplugin.Device, error) {
	var devices []kubeletplugin.Device
	var names []string
	for _, consumer := range claim.Status.ReservedFor {
		names = append(names, consumer.Name)
	}
	spec := specOf(d.Name)
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver != d.Name {
			continue
		}
		path := d.File(result.Device)
		if err := d.reserveDevice(claim.UID, &result); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, []byte(strings.Join(names, "\n")+"\n"), 0o644); err != nil {
			return nil, err
		}
		id := fmt.Sprintf("%s-%s", claim.UID, result.Device)
		if result.ShareID != nil {
			id += "-" + string(*result.ShareID)
		}
		spec.addDevice(id, d.onHost(result.Device), cmp.Or(d.Files, "/devices"))
		device := kubeletplugin.Device{
			Requests: []string{result.Request}, PoolName: result.Pool, DeviceName: result.Device,
			CDIDeviceIDs: []string{spec.Kind + "=" + id}, ShareID: result.ShareID,
		}
		if index, err := indexOf(result.Device); err == nil { // others may publish devices in the driver's name
			device.Metadata = &kubeletplugin.DeviceMetadata{Attributes: attributesOf(index)}
		}
		devices = append(devices, device)
	}
	content, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	return devices, os.WriteFile(d.specFile(claim.UID), content, 0o644)
}

// reserveDevice notes that an allocated device is prepared for a claim. It returns an error if it is for another one.
func (d *Driver) reserveDevice(claim types.UID, result *resourcev1.DeviceRequestAllocationResult) error {
	if !d.Exclusive || result.ShareID != nil || result.AdminAccess != nil && *result.AdminAccess {
		return nil
	}
	user, err := os.ReadFile(d.reservationFile(result.Device))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return os.WriteFile(d.reservationFile(result.Device), []byte(claim), 0o644)
	case err == nil && string(user) != string(claim):
		return fmt.Errorf("device %s is prepared for another claim: %s", result.Device, user)
	}
	return err
}

// reservationFile is the file that says which claim has a device for itself.
func (d *Driver) reservationFile(device string) string {
	return filepath.Join(d.Plugins, d.Name, device+".taken")
}

// freeDevices notes that a claim has no device for itself any more.
func (d *Driver) freeDevices(claim types.UID) error {
	all, err := filepath.Glob(d.reservationFile("*"))
	for _, name := range all {
		user, failed := os.ReadFile(name)
		if failed == nil && string(user) == string(claim) {
			failed = os.Remove(name)
		}
		err = errors.Join(err, failed)
	}
	return err
}

// writeClaimStatus writes the files of devices to the status of their claim.
func (d *Driver) writeClaimStatus(ctx context.Context, claim *resourcev1.ResourceClaim) error {
	claim = claim.DeepCopy()
	claim.Status.Devices = slices.DeleteFunc(claim.Status.Devices, func(entry resourcev1.AllocatedDeviceStatus) bool { return entry.Driver == d.Name })
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver != d.Name {
			continue
		}
		index, err := indexOf(result.Device)
		if err != nil {
			return err
		}
		data, err := json.Marshal(map[string]any{"path": d.File(result.Device), "index": index})
		if err != nil {
			return err
		}
		claim.Status.Devices = append(claim.Status.Devices, resourcev1.AllocatedDeviceStatus{
			Driver: d.Name, Pool: result.Pool, Device: result.Device, ShareID: (*string)(result.ShareID), Data: &runtime.RawExtension{Raw: data},
		})
	}
	_, err := d.Client.ResourceV1().ResourceClaims(claim.Namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	return err
}

// specFile is the file of the CDI spec of a claim.
func (d *Driver) specFile(claim types.UID) string {
	return filepath.Join(d.CDI, fmt.Sprintf("%s-%s.json", d.Name, claim))
}

// UnprepareResourceClaims implements kubeletplugin.DRAPlugin.
func (d *Driver) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	results := map[types.UID]error{}
	for _, claim := range claims {
		results[claim.UID] = d.unprepareClaim(claim.UID)
	}
	return results, nil
}

// unprepareClaim removes the files that the CDI spec of a claim names, and then the spec.
func (d *Driver) unprepareClaim(claim types.UID) error {
	if err := d.freeDevices(claim); err != nil {
		return err
	}
	content, err := os.ReadFile(d.specFile(claim))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var spec cdiSpec
	if err == nil {
		err = json.Unmarshal(content, &spec)
	}
	for _, device := range spec.Devices {
		for _, mount := range device.ContainerEdits.Mounts {
			if gone := os.Remove(d.File(filepath.Base(mount.HostPath))); !errors.Is(gone, fs.ErrNotExist) {
				err = errors.Join(err, gone)
			}
		}
	}
	if err != nil {
		return err
	}
	return os.Remove(d.specFile(claim))
}

// HandleError implements kubeletplugin.DRAPlugin.
func (d *Driver) HandleError(_ context.Context, err error, message string) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", message, err)
}

// WatchHealthStatus implements kubeletplugin.DRAPlugin.
func (d *Driver) WatchHealthStatus(ctx context.Context, reports chan<- kubeletplugin.DeviceHealthReport) error {
	if d.Health == nil {
		return kubeletplugin.ErrHealthNotSupported
	}
	return d.Health(ctx, reports)
}

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ContainerEdits says what a container runtime would do to a container that has
// allocated devices of the driver, in the words of the Container Device Interface
// (CDI). kwok-dra starts no container: it shows what one would see.
//
// All strings are Go templates as in the devices. They see
//
//	.Node      the Node, as elsewhere
//	.Claim     name, namespace and uid of the claim, and adminAccess: whether any
//	           of its results has admin access
//	.Pod       name, namespace and uid of the Pod
//	.Config    the opaque parameters for the driver and the request, a list: those
//	           of the DeviceClass before those of the claim; with perClaim those for
//	           any request of the claim
//	.Device    with perDevice: the device as it is published (resource.k8s.io/v1
//	           Device)
//	.Result    with perDevice: the allocation result (DeviceRequestAllocationResult):
//	           request, driver, pool, device, adminAccess, shareID, consumedCapacity
//	.Request   with perRequest: the name of the request, of an alternative
//	           REQUEST/ALTERNATIVE
//	.Devices   with perRequest and perClaim: what the driver has allocated to the
//	           request or the claim, a list; each has .Device and .Result
//
// A variable whose template yields nothing is left out, as is a mount without a
// containerPath and a device node without a path.
type ContainerEdits struct {
	// PerClaim applies once to each claim with a device of the driver that the container
	// uses.
	PerClaim *Edits `json:"perClaim,omitempty"`

	// PerRequest applies once to each request with a device that the container has, after
	// PerClaim. It has the same fields.
	PerRequest *Edits `json:"perRequest,omitempty"`

	// PerDevice applies to each allocated device that the container has, after PerRequest.
	// It applies to each share of a device with several shares. It has the same fields.
	PerDevice *Edits `json:"perDevice,omitempty"`

	// DeviceMetadata mounts a file with the metadata of the allocated devices for each
	// request that the container uses, as a driver does that enables device metadata.
	// An empty object is enough.
	DeviceMetadata *DeviceMetadata `json:"deviceMetadata,omitempty"`
}

// DeviceMetadata says what a driver writes into its files of device metadata.
type DeviceMetadata struct {
	// Versions are the versions of metadata.resource.k8s.io in which a file has the
	// metadata, in the order of the file: v1beta1, which drivers of Kubernetes 1.37 or
	// later have to write, and v1alpha1. Default: v1beta1 and v1alpha1.
	Versions []string `json:"versions,omitempty"`
}

// MetadataVersions are the versions that device metadata can have, newest first.
var MetadataVersions = []string{"v1beta1", "v1alpha1"}

// Edits are fields of the same name and meaning in CDI's containerEdits.
type Edits struct {
	// Env are environment variables, each NAME=value. At most 64.
	Env []string `json:"env,omitempty"`

	// Mounts are what is mounted. At most 64.
	Mounts []Mount `json:"mounts,omitempty"`

	// DeviceNodes are the device nodes. At most 64.
	DeviceNodes []DeviceNode `json:"deviceNodes,omitempty"`
}

// Mount is a mount in CDI's words.
type Mount struct {
	// HostPath is what is mounted. Required.
	HostPath string `json:"hostPath"`

	// ContainerPath is where it is mounted. Required.
	ContainerPath string `json:"containerPath"`

	// Options are those of the mount, for example ro and bind.
	Options []string `json:"options,omitempty"`

	// Type is that of the file system.
	Type string `json:"type,omitempty"`
}

// DeviceNode is a device node in CDI's words.
type DeviceNode struct {
	// Path is where the node is in the container. Required.
	Path string `json:"path"`

	// HostPath is where it is on the host. Default: the same path.
	HostPath string `json:"hostPath,omitempty"`

	// Type is b, c, u or p. Default: that of the node on the host.
	Type string `json:"type,omitempty"`

	// Major is the major number, or a template that yields it.
	Major *intstr.IntOrString `json:"major,omitempty"`

	// Minor is the minor number, or a template that yields it.
	Minor *intstr.IntOrString `json:"minor,omitempty"`

	// FileMode are the permission bits of the file as a number.
	FileMode *int64 `json:"fileMode,omitempty"`

	// Permissions are those of the cgroup, of the letters r, w and m.
	Permissions string `json:"permissions,omitempty"`

	// UID is the user that owns the node.
	UID *int64 `json:"uid,omitempty"`

	// GID is the group that owns the node.
	GID *int64 `json:"gid,omitempty"`
}

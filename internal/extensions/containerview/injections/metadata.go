package injections

import (
	"bytes"
	"fmt"
	"path"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/dynamic-resource-allocation/api/metadata"
	"k8s.io/dynamic-resource-allocation/api/metadata/install"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// metadataEncoders returns an encoder for each version of device metadata.
var metadataEncoders = sync.OnceValue(func() map[string]runtime.Encoder {
	codecs := serializer.NewCodecFactory(install.NewScheme())
	info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	encoders := map[string]runtime.Encoder{}
	for _, version := range v1alpha1.MetadataVersions {
		encoders[version] = codecs.EncoderForVersion(info.PrettySerializer, schema.GroupVersion{Group: metadata.GroupName, Version: version})
	}
	return encoders
})

// addMetadata mounts the device metadata of the request that a device is for, as the kubeletplugin
// library does for a driver with EnableDeviceMetadata. Alternatives have the file of their request.
func (i *injector) addMetadata(options *v1alpha1.DeviceMetadata, result *resourcev1.DeviceRequestAllocationResult) error {
	request := resourceclaim.BaseRequestRef(result.Request)
	id := fmt.Sprintf("%s/metadata=%s_%s", result.Driver, i.claim.UID, request)
	if options == nil || i.known[id] {
		return nil
	}
	i.known[id] = true
	described, err := i.describeRequest(result.Driver, result.Request)
	if err != nil {
		return err
	}
	inContainer := metadata.ResourceClaimFilePath(result.Driver, i.claim.Name, request)
	if described.PodClaimName != nil {
		inContainer = metadata.ResourceClaimTemplateFilePath(result.Driver, *described.PodClaimName, request)
	}
	versions := options.Versions
	if len(versions) == 0 {
		versions = v1alpha1.MetadataVersions
	}
	var content bytes.Buffer
	for _, version := range versions {
		if err := metadataEncoders()[version].Encode(described, &content); err != nil {
			return fmt.Errorf("encode device metadata of request %s in version %s: %w", result.Request, version, err)
		}
		content.WriteByte('\n')
	}
	onHost := path.Join("/var/lib/kubelet/plugins", result.Driver, "dra-device-metadata", i.claim.Namespace+"_"+i.claim.Name, request, "metadata.json")
	i.made = append(i.made, containerview.Injection{
		ID:            id,
		Edits:         v1alpha1.Edits{Mounts: []v1alpha1.Mount{{HostPath: onHost, ContainerPath: inContainer, Options: []string{"ro", "bind"}}}},
		MetadataFiles: []containerview.MetadataFile{{Path: inContainer, Content: content.String()}},
	})
	return nil
}

// describeRequest returns the metadata of all devices that a driver has allocated to a request.
func (i *injector) describeRequest(driver, request string) (*metadata.DeviceMetadata, error) {
	var allocated container
	if err := i.applyOfDriver(&allocated, driver, request); err != nil {
		return nil, err
	}
	described := metadata.DeviceMetadataRequest{Name: request}
	for _, device := range allocated.Devices {
		one := metadata.Device{Driver: driver, Pool: device.Result.Pool, Name: device.Result.Device, Attributes: device.Device.Attributes}
		if entry := facts.EntryOf(i.claim, facts.ResultID(device.Result)); entry != nil {
			one.NetworkData = entry.NetworkData
		}
		described.Devices = append(described.Devices, one)
	}
	return &metadata.DeviceMetadata{
		ObjectMeta:   metav1.ObjectMeta{Name: i.claim.Name, Namespace: i.claim.Namespace, UID: i.claim.UID, Generation: 1},
		PodClaimName: generatedFor(i.pod, i.claim.Name),
		Requests:     []metadata.DeviceMetadataRequest{described},
	}, nil
}

// generatedFor returns the name by which a Pod names a claim that was generated for it from a
// ResourceClaimTemplate, or nil. The cache drops the annotation with which the claim says that.
func generatedFor(pod *corev1.Pod, claim string) *string {
	for k := range pod.Spec.ResourceClaims {
		podClaim := &pod.Spec.ResourceClaims[k]
		if name, _, err := resourceclaim.Name(pod, podClaim); err == nil && name != nil && *name == claim && podClaim.ResourceClaimName == nil {
			return &podClaim.Name
		}
	}
	return nil
}

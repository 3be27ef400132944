package slices

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
)

// maxReadable is where the readable part of a name is cut off, as the API
// server cuts generateName.
const maxReadable = 58

// nameOf names the slice of a pool at an index. The name starts with the index,
// since the scheduler goes through a pool in the order of names. It ends with a
// hash, so that creating a slice twice is refused, and a node that comes again
// under its old name gets new slices.
func nameOf(node *corev1.Node, pool *devices.Pool, index int) string {
	readable := fmt.Sprintf("%05x-%s-%s", index, strings.ToLower(pool.Driver), node.Name)
	if len(readable) > maxReadable {
		readable = readable[:maxReadable]
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%d", node.UID, pool.Driver, pool.Name, index))
	return strings.TrimRight(readable, ".-") + "-" + hex.EncodeToString(sum[:5])
}

// ownerOf is the owner reference that real drivers' slices have. It has the
// garbage collector delete what kwok-dra could not.
func ownerOf(node *corev1.Node) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: "v1",
		Kind:       "Node",
		Name:       node.Name,
		UID:        node.UID,
		Controller: new(true),
	}
}

// newSlices makes the slices of a pool, without a generation.
func newSlices(node *corev1.Node, pool *devices.Pool) []*resourcev1.ResourceSlice {
	chunks := pool.Slices()
	made := make([]*resourcev1.ResourceSlice, len(chunks))
	for i, chunk := range chunks {
		made[i] = &resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{
				Name:            nameOf(node, pool, i),
				Labels:          map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue},
				OwnerReferences: []metav1.OwnerReference{ownerOf(node)},
			},
			Spec: resourcev1.ResourceSliceSpec{
				Driver:   pool.Driver,
				NodeName: new(node.Name),
				Pool: resourcev1.ResourcePool{
					Name:               pool.Name,
					ResourceSliceCount: int64(len(chunks)),
				},
				Devices: chunk,
			},
		}
	}
	return made
}

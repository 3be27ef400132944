package containerview

import (
	"strings"

	"k8s.io/dynamic-resource-allocation/api/metadata"
)

// MetadataFile is a file in which a driver tells a container what it knows of the devices of a request
// (KEP 5304). The driver mounts one for each request.
type MetadataFile struct {
	// Path is the path in the container.
	Path string `json:"path"`
	// Content is a stream of JSON objects, one for each version of the format.
	Content string `json:"content"`
}

// IsMetadataPath reports whether a container has device metadata at a path.
func IsMetadataPath(name string) bool {
	return strings.HasPrefix(name, metadata.ContainerDir+"/") && strings.HasSuffix(name, metadata.MetadataFileSuffix)
}

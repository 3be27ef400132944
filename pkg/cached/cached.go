// Package cached has what all caches of API objects share.
package cached

import "k8s.io/apimachinery/pkg/util/resourceversion"

// Older reports whether one resource version is older than another. Those that
// are not numbers, as no API server's, count as equal.
func Older(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

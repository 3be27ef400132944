package overlay

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestImageOfRegistry: with the variable IMAGE of make the manifests name the image as a
// registry does.
func TestImageOfRegistry(t *testing.T) {
	t.Setenv("IMAGE", "registry.example.com/team/kwok-dra")
	require.Contains(t, Variant{Overlay: "kwok", Tag: "v9.8.7"}.kustomizationFile(), "newName: registry.example.com/team/kwok-dra, newTag: v9.8.7")
}

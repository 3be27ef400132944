package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
	"github.com/kwok-dra/kwok-dra/test/tools/release/image"
)

// TestChangelog has the changelog name the version whose image the overlays use as
// its newest one, and have a link for each version.
func TestChangelog(t *testing.T) {
	t.Parallel()
	changelog := readFile(t, sidecar.Root(), "CHANGELOG.md")
	var versions []string
	for _, heading := range regexp.MustCompile(`(?m)^## \[(.+?)\]`).FindAllStringSubmatch(changelog, -1) {
		versions = append(versions, heading[1])
		require.Contains(t, changelog, "\n["+heading[1]+"]: https://")
	}
	require.Equal(t, "Unreleased", versions[0])
	require.Equal(t, image.Name("v"+versions[1]), usedImage(t, "sidecar"))
	require.Equal(t, image.Name("v"+versions[1]), usedImage(t, "kwokctl", "docker"))
}

// usedImage is the image of kwok-dra in a directory of kustomize.
func usedImage(t *testing.T, elements ...string) string {
	t.Helper()
	elements = append([]string{sidecar.Root(), "kustomize"}, append(elements, "container.yaml")...)
	found := regexp.MustCompile(regexp.QuoteMeta(image.Repository())+`:\S+`).FindAllString(readFile(t, elements...), -1)
	require.Len(t, found, 1, strings.Join(elements, "/"))
	return found[0]
}

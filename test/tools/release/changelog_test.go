package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
	"github.com/kwok-dra/kwok-dra/test/tools/release/image"
)

var (
	versionHeading = regexp.MustCompile(`(?m)^## \[(.+?)\]`)
	linkTarget     = regexp.MustCompile(`\]\([^)]*\)`)
)

// kinds are the headings of a version, in their order.
var kinds = []string{"Highlights", "Action required", "Added", "Changed", "Fixed", "Removed"}

const (
	maxHighlights = 10
	// maxChange is the length of a change in characters, without the targets of links.
	maxChange = 160
)

// TestChangelog has the changelog name the version whose image the overlays use as
// its newest one, and have a link for each version.
func TestChangelog(t *testing.T) {
	t.Parallel()
	changelog := readFile(t, sidecar.Root(), "CHANGELOG.md")
	var versions []string
	for _, heading := range versionHeading.FindAllStringSubmatch(changelog, -1) {
		versions = append(versions, heading[1])
		require.Contains(t, changelog, "\n["+heading[1]+"]: https://")
	}
	require.Equal(t, "Unreleased", versions[0])
	require.Equal(t, image.Name("v"+versions[1]), usedImage(t, "sidecar"))
	require.Equal(t, image.Name("v"+versions[1]), usedImage(t, "kwokctl", "docker"))
}

// TestChangelogIsOneLinePerChange: each version begins with a few highlights, and has one
// line for each change, by kind.
func TestChangelogIsOneLinePerChange(t *testing.T) {
	t.Parallel()
	changelog := readFile(t, sidecar.Root(), "CHANGELOG.md")
	for _, heading := range versionHeading.FindAllStringSubmatch(changelog, -1) {
		notes, err := releaseNotes(changelog, heading[1])
		if heading[1] == "Unreleased" && err != nil {
			continue // all is released
		}
		require.NoError(t, err)
		var found []string
		changes := map[string]int{}
		for line := range strings.Lines(notes) {
			line = strings.TrimSuffix(line, "\n")
			if kind, isHeading := strings.CutPrefix(line, "### "); isHeading {
				found = append(found, kind)
				continue
			}
			if line == "" {
				continue
			}
			require.NotEmpty(t, found, "%s does not begin with highlights", heading[1])
			require.Regexp(t, `^- \S.*\.$`, line, heading[1])
			require.LessOrEqual(t, len([]rune(linkTarget.ReplaceAllString(line, ""))), maxChange, line)
			changes[found[len(found)-1]]++
		}
		require.Equal(t, kinds[0], found[0], heading[1])
		require.Equal(t, slices.DeleteFunc(slices.Clone(kinds), func(kind string) bool { return changes[kind] == 0 }), found, "kinds of %s", heading[1])
		require.LessOrEqual(t, changes[kinds[0]], maxHighlights, heading[1])
	}
}

func TestReleaseNotes(t *testing.T) {
	t.Parallel()
	const changelog = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- New [page](docs/new.md#top).\n\n" +
		"## [1.3.0] - 2026-02-01\n\n" +
		"## [1.2.3] - 2026-01-01\n\n### Fixed\n\n- [Old](https://example.com/a).\n\n[Unreleased]: https://example.com\n[1.2.3]: https://example.com\n"
	const unreleased = "### Added\n\n- New [page](https://github.com/kwok-dra/kwok-dra/blob/%s/docs/new.md#top).\n"
	const old = "### Fixed\n\n- [Old](https://example.com/a).\n"
	for version, want := range map[string]string{
		"v1.2.3":      old,
		"v1.2.3-rc.1": old,
		"v1.4.0-rc.1": strings.Replace(unreleased, "%s", "v1.4.0-rc.1", 1),
	} {
		notes, err := releaseNotes(changelog, version)
		require.NoError(t, err, version)
		require.Equal(t, want, notes, version)
	}
	for _, version := range []string{"v1.2", "v1.3.0", "v1.4.0", "v11.2.3"} {
		_, err := releaseNotes(changelog, version)
		require.EqualError(t, err, `find the release notes: CHANGELOG.md says nothing below "## [`+version[1:]+`]": give that heading to what is unreleased`, version)
	}
}

// usedImage is the image of kwok-dra in a directory of kustomize.
func usedImage(t *testing.T, elements ...string) string {
	t.Helper()
	elements = append([]string{sidecar.Root(), "kustomize"}, append(elements, "container.yaml")...)
	found := regexp.MustCompile(regexp.QuoteMeta(image.Repository())+`:\S+`).FindAllString(readFile(t, elements...), -1)
	require.Len(t, found, 1, strings.Join(elements, "/"))
	return found[0]
}

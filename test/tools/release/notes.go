package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// notesFile is the file in dist that becomes the text of the release on GitHub.
const notesFile = "RELEASE_NOTES.md"

// sourceURL is where the files of a version can be read. The version follows.
const sourceURL = "https://github.com/kwok-dra/kwok-dra/blob/"

var (
	sectionEnd   = regexp.MustCompile(`(?m)^(## |\[.+?\]: )`)
	relativeLink = regexp.MustCompile(`\]\(([\w./-]+(?:#[^)]*)?)\)`)
)

// writeNotes writes the version's section of CHANGELOG.md as release notes.
func (r *release) writeNotes(context.Context) error {
	changelog, err := os.ReadFile(filepath.Join(r.Root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	notes, err := releaseNotes(string(changelog), r.Version)
	if err != nil {
		return err
	}
	return os.WriteFile(r.distPath(notesFile), []byte(notes), 0o644)
}

// releaseNotes returns the section of a version. A pre-release without a section of its own
// has that of the version that it precedes, or what is unreleased. Links become absolute,
// because the notes are not read beside the files.
func releaseNotes(changelog, version string) (string, error) {
	name := strings.TrimPrefix(version, "v")
	headings := []string{name}
	if final, _, isPreRelease := strings.Cut(name, "-"); isPreRelease {
		headings = append(headings, final, "Unreleased")
	}
	for _, heading := range headings {
		_, rest, found := strings.Cut(changelog, "\n## ["+heading+"]")
		if !found {
			continue
		}
		_, text, _ := strings.Cut(rest, "\n") // the date
		if end := sectionEnd.FindStringIndex(text); end != nil {
			text = text[:end[0]]
		}
		if text = strings.TrimSpace(text); text != "" {
			return relativeLink.ReplaceAllString(text, "]("+sourceURL+version+"/$1)") + "\n", nil
		}
	}
	return "", fmt.Errorf(`find the release notes: CHANGELOG.md says nothing below "## [%s]": give that heading to what is unreleased`, name)
}

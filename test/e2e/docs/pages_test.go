package docs

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/e2e/docs/page"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
	"github.com/kwok-dra/kwok-dra/test/tools/demo/world"
)

// patience bounds each block.
const patience = 3 * time.Minute

// TestPages runs every page, each from the same state.
func TestPages(t *testing.T) {
	t.Parallel()
	pages := readPages(t)
	for path := range usedUp {
		require.Contains(t, pages, path)
	}
	all := newDemos(t, len(pages))
	for path, read := range pages {
		if read.Cluster == "" || read.Cluster == page.Kwok {
			continue // nothing is run, or package install does
		}
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			var demo *world.World
			if read.Cluster == page.Demo {
				demo = all.take(t, path)
			}
			follow(t, demo, path, read)
		})
	}
}

// quickTargets are those of make that readers run here too. The others start
// clusters of their own, or take long.
var quickTargets = []string{"build", "help"}

var makes = regexp.MustCompile(`(?m)^.*\bmake\s+([a-z-]+)`)

// refuseSlowTargets has blocks with other targets of make be skipped.
func refuseSlowTargets(path string, read *page.Page) error {
	for _, step := range read.Steps {
		for _, found := range makes.FindAllStringSubmatch(step.Text, -1) {
			if step.Kind == page.Commands && step.Skip == "" && !slices.Contains(quickTargets, found[1]) {
				return fmt.Errorf("%s:%d: make %s is not for a test: skip the block with a reason", path, step.Line, found[1])
			}
		}
	}
	return nil
}

func TestSlowTargets(t *testing.T) {
	t.Parallel()
	run := &page.Page{Steps: []page.Step{commands("make build\n"), commands("cd kwok-dra && make demo   # a cluster\n")}}
	require.ErrorContains(t, refuseSlowTargets("page.md", run), "make demo is not for a test")
	run.Steps[1].Skip = "the demo runs"
	require.NoError(t, refuseSlowTargets("page.md", run))
}

// follow does what a page says, in a demo if the page has one.
func follow(t *testing.T, demo *world.World, path string, read *page.Page) {
	t.Helper()
	require.NoError(t, refuseSlowTargets(path, read))
	r := newReader(t)
	if demo != nil {
		r.follows(demo)
	}
	s := newShell(t, r.checkout, r.environment(t))
	files := listFiles(t, r.checkout)
	var objects map[string]string
	if r.cluster != nil {
		var err error
		objects, err = listObjects(t.Context(), r.cluster)
		require.NoError(t, err)
	}
	for _, step := range read.Steps {
		place := fmt.Sprintf("%s:%d", path, step.Line)
		if step.Skip != "" && step.Kind != page.File {
			t.Logf("%s is skipped: %s", place, step.Skip)
			continue
		}
		switch step.Kind {
		case page.File:
			file := filepath.Join(r.checkout, step.File)
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
			require.NoError(t, os.WriteFile(file, []byte(step.Text), 0o600))
		case page.Commands:
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			err := s.run(ctx, step)
			cancel()
			if err != nil {
				t.Fatalf("%s: %v\nThe block is:\n%s", place, err, step.Text)
			}
		case page.Document: // TestDocuments checks it
		}
	}
	require.Empty(t, difference(files, listFiles(t, r.checkout)), "files of the checkout: put that right under the heading \"Clean up\" of %s", path)
	if r.cluster != nil {
		requireAsBefore(t, r.cluster, path, objects)
	}
}

// readPages reads all pages, by their paths from the top of the repository.
func readPages(t *testing.T) map[string]*page.Page {
	t.Helper()
	pages := map[string]*page.Page{}
	for _, path := range markdown(t) {
		content, err := os.ReadFile(filepath.Join(sidecar.Root(), path))
		require.NoError(t, err)
		if path != "README.md" && !strings.HasPrefix(path, "docs/") && !strings.Contains(string(content), "<!-- cluster:") {
			continue
		}
		pages[path], err = page.Parse(path, content)
		if err != nil {
			t.Error(err)
			delete(pages, path)
		}
	}
	return pages
}

// notPages are directories without pages.
var notPages = []string{".git", "bin", "dist", "testdata"}

// markdown are the paths of all Markdown files.
func markdown(t *testing.T) []string {
	t.Helper()
	var paths []string
	require.NoError(t, fs.WalkDir(os.DirFS(sidecar.Root()), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(notPages, entry.Name()):
			return fs.SkipDir
		case filepath.Ext(path) == ".md":
			paths = append(paths, path)
		}
		return nil
	}))
	require.Contains(t, paths, "README.md")
	return paths
}

package docs

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster"
)

// usedUp are the pages after which the demo is another one, and that say so.
var usedUp = []string{
	"docs/guides/copy-fleet.md", // replaces the nodes by their copies
}

// kinds are those of the objects that pages make.
const kinds = "namespaces,nodes,deployments,daemonsets,jobs,pods,resourcequotas,configmaps,deviceclasses,resourceclaims,resourceclaimtemplates," +
	"resourcepooltemplates,kwokdraconfigurations,stages"

// listFiles are the files of a checkout, but for those that git ignores.
func listFiles(t *testing.T, checkout string) []string {
	t.Helper()
	var files []string
	require.NoError(t, fs.WalkDir(os.DirFS(checkout), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{"bin", "dist"}, path):
			return fs.SkipDir
		case !entry.IsDir():
			files = append(files, filepath.ToSlash(path))
		}
		return nil
	}))
	return files
}

// object is what is compared of an object: what it is, and what pages edit of one that is
// not theirs.
type object struct {
	Kind     string
	Metadata struct {
		Name, Namespace     string
		Labels, Annotations map[string]string
		OwnerReferences     []json.RawMessage
	}
	Spec struct {
		Unschedulable bool
		Taints        []struct{ Key string }
	}
}

// listObjects are the objects of a cluster that nothing else owns, each with what pages
// may have left on it.
func listObjects(ctx context.Context, c *cluster.Cluster) ([]string, error) {
	output, err := c.Kubectl(ctx, "get", kinds, "-A", "-o", "json")
	if err != nil {
		return nil, err
	}
	var list struct{ Items []object }
	if err := json.Unmarshal([]byte(output), &list); err != nil {
		return nil, fmt.Errorf("read objects: %w", err)
	}
	var all []string
	for _, o := range list.Items {
		if len(o.Metadata.OwnerReferences) > 0 {
			continue
		}
		name := strings.TrimPrefix(o.Metadata.Namespace+"/", "/") + o.Metadata.Name
		all = append(all, o.Kind+" "+name)
		if o.Kind != "Node" {
			continue
		}
		for key := range o.Metadata.Labels {
			all = append(all, "label "+key+" of Node "+name)
		}
		for key := range o.Metadata.Annotations {
			all = append(all, "annotation "+key+" of Node "+name)
		}
		for _, taint := range o.Spec.Taints {
			all = append(all, "taint "+taint.Key+" of Node "+name)
		}
		if o.Spec.Unschedulable {
			all = append(all, "cordon of Node "+name)
		}
	}
	return all, nil
}

// difference names what is left behind, and what is missing.
func difference(before, after []string) (left, missing []string) {
	left = slices.DeleteFunc(slices.Clone(after), func(one string) bool { return slices.Contains(before, one) })
	missing = slices.DeleteFunc(slices.Clone(before), func(one string) bool { return slices.Contains(after, one) })
	return left, missing
}

// requireAsBefore returns when a reader who has followed a page has the cluster of before,
// for the next page.
func requireAsBefore(t *testing.T, c *cluster.Cluster, before []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var left, missing []string
	for {
		after, err := listObjects(ctx, c)
		if err == nil {
			left, missing = difference(before, after)
			if len(left)+len(missing) == 0 {
				return
			}
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the page leaves behind %q and takes away %q (%v): put that right under its heading \"Clean up\"", left, missing, err)
		case <-time.After(pause):
		}
	}
}

func TestDifference(t *testing.T) {
	t.Parallel()
	left, missing := difference([]string{"a", "b"}, []string{"b", "c"})
	require.Equal(t, []string{"c"}, left)
	require.Equal(t, []string{"a"}, missing)
}

func TestListFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"bin/a", "docs/b.md", "gpus.yaml"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	require.Equal(t, []string{"docs/b.md", "gpus.yaml"}, listFiles(t, dir))
}

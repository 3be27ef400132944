package docs

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kwok-dra/kwok-dra/test/cluster"
)

// listFiles are the files of a checkout, but for those that git ignores.
func listFiles(t *testing.T, checkout string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, fs.WalkDir(os.DirFS(checkout), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{"bin", "dist"}, path):
			return fs.SkipDir
		case !entry.IsDir():
			files[filepath.ToSlash(path)] = ""
		}
		return nil
	}))
	return files
}

// transient are kinds of which a cluster writes objects by itself.
var transient = []string{"events", "events.events.k8s.io", "leases.coordination.k8s.io", "componentstatuses", "endpoints", "endpointslices.discovery.k8s.io", "flowschemas.flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io"}

// listObjects are the objects of a cluster that nothing else owns or that are about to go, by their kind
// and name, each with all that was asked for, and a Node with its conditions. Kubernetes keeps Pods of deleted nodes for
// 40 s, in which another page would list them.
func listObjects(ctx context.Context, c *cluster.Cluster) (map[string]string, error) {
	names, err := c.Kubectl(ctx, "api-resources", "--verbs=list,get", "-o", "name")
	if err != nil {
		return nil, err
	}
	kinds := slices.DeleteFunc(strings.Fields(names), func(kind string) bool { return slices.Contains(transient, kind) })
	output, err := c.Kubectl(ctx, "get", strings.Join(kinds, ","), "-A", "-o", "json")
	if err != nil {
		return nil, err
	}
	var list struct{ Items []unstructured.Unstructured }
	if err := json.Unmarshal([]byte(output), &list); err != nil {
		return nil, fmt.Errorf("read objects: %w", err)
	}
	objects := map[string]string{}
	for _, o := range list.Items {
		if len(o.GetOwnerReferences()) > 0 && o.GetDeletionTimestamp() == nil {
			continue
		}
		name := strings.Join([]string{o.GetKind(), o.GetNamespace(), o.GetName()}, " ")
		content := o.Object
		if o.GetKind() == "Node" {
			conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
			for _, condition := range conditions {
				condition := condition.(map[string]any)
				content["condition "+fmt.Sprint(condition["type"])] = condition["status"]
			}
		}
		delete(content, "status")
		content["metadata"] = map[string]any{"labels": o.GetLabels(), "annotations": o.GetAnnotations()}
		text, err := json.Marshal(content)
		if err != nil {
			return nil, fmt.Errorf("write object: %w", err)
		}
		objects[name] = string(text)
	}
	return objects, nil
}

// difference names what is left behind, what is missing, and what has become of the rest.
func difference(before, after map[string]string) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(after)) {
		switch old, found := before[name]; {
		case !found:
			all = append(all, name+" is left behind")
		case old != after[name]:
			all = append(all, fmt.Sprintf("%s was %s and is %s", name, old, after[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, found := after[name]; !found {
			all = append(all, name+" is missing")
		}
	}
	return all
}

// requireAsBefore returns when a reader who has followed a page has the cluster of before,
// for the next page.
func requireAsBefore(t *testing.T, c *cluster.Cluster, path string, before map[string]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var changes []string
	for {
		after, err := listObjects(ctx, c)
		if err == nil {
			expected, isUsedUp := usedUp[path]
			changes = slices.DeleteFunc(difference(before, after), func(change string) bool {
				return isUsedUp && strings.HasPrefix(change, expected)
			})
			if len(changes) == 0 {
				return
			}
		}
		select {
		case <-ctx.Done():
			t.Fatalf("put that right under the heading \"Clean up\" of the page:\n%s (%v)", strings.Join(changes, "\n"), err)
		case <-time.After(pause):
		}
	}
}

func TestDifference(t *testing.T) {
	t.Parallel()
	before := map[string]string{"Node  a": "{}", "Node  b": "{}", "Node  c": "{}"}
	require.Empty(t, difference(before, before))
	require.Equal(t, []string{`Node  c was {} and is {"spec":{}}`, "Node  d is left behind", "Node  a is missing"},
		difference(before, map[string]string{"Node  b": "{}", "Node  c": `{"spec":{}}`, "Node  d": "{}"}))
}

func TestListFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"bin/a", "docs/b.md", "gpus.yaml"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	require.Equal(t, map[string]string{"docs/b.md": "", "gpus.yaml": ""}, listFiles(t, dir))
}

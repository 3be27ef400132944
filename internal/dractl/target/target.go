package target

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/dractl/check"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/documents"
	"github.com/kwok-dra/kwok-dra/internal/dractl/fleet"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

const classKind = "DeviceClass"

// Target is the kind of node that is made.
type Target struct {
	// Name is the value of the label of its nodes.
	Name string
	// Templates select each node.
	Templates []*devices.Template
	// Objects are the DeviceClasses and templates to make. Templates that are in the cluster
	// already are not among them.
	Objects []*unstructured.Unstructured
	// Pools are those of each node, without those that come with a driver's Pod.
	Pools []devices.Pool

	profiles []string
	labels   map[string]string
	uses     []string
}

// Read finds what is meant by targets: each is a profile, a file, or a template in the
// cluster, or several of them joined by commas. All together are for one node.
func Read(streams cli.Streams, names []string, known *Known) (*Target, error) {
	var parts []string
	for _, name := range names {
		parts = append(parts, strings.Split(name, ",")...)
	}
	slices.Sort(parts)
	parts = slices.Compact(parts)
	t := &Target{}
	var named []string
	for _, part := range parts {
		name, err := t.addPart(streams, part, known)
		if err != nil {
			return nil, err
		}
		named = append(named, name)
	}
	slices.Sort(named)
	t.Name = strings.Join(slices.Compact(named), ".")
	if len(t.Name) > maxName {
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(t.Name)) // it never fails
		t.Name = fmt.Sprintf("%s-%08x", strings.TrimRight(t.Name[:maxName-9], "-."), hash.Sum32())
	}
	return t, t.completeTarget(known)
}

// addPart adds one part of a target, and returns its name.
func (t *Target) addPart(streams cli.Streams, part string, known *Known) (string, error) {
	catalogue, err := profiles()
	if err != nil {
		return "", err
	}
	if dir, isProfile := catalogue[part]; isProfile {
		all, err := readProfile(part, dir)
		if err != nil {
			return "", err
		}
		t.profiles = append(t.profiles, part)
		_, err = t.addDocuments(streams, part, all)
		return part, err
	}
	if t.addFromCluster(part, known) {
		return part, nil
	}
	if !isPath(part) {
		names := slices.Collect(maps.Keys(catalogue))
		for _, template := range known.Templates {
			names = append(names, template.Name)
		}
		hint := "kwok-dractl generate --list-profiles lists the profiles; a template of your own is a file, such as ./" + cmp.Or(part, "my") + ".yaml"
		if nearest := fleet.NearestName(part, names); nearest != "" {
			hint = "did you mean " + nearest + "?"
		}
		return "", fmt.Errorf("there is no profile, no file and no template in the cluster called %q: %s", part, hint)
	}
	files := documents.Files{Paths: []string{part}}
	all, err := files.Read(streams)
	if err != nil {
		return "", err
	}
	return t.addDocuments(streams, part, all)
}

// isPath reports whether a part of a target is the name of a file or a directory.
func isPath(part string) bool {
	if part == documents.Stdin || strings.ContainsAny(part, `/\`) || slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(part)) {
		return true
	}
	_, err := os.Stat(part)
	return !errors.Is(err, fs.ErrNotExist)
}

// addFromCluster adds a template of the cluster, and the other templates that the nodes made for it use.
func (t *Target) addFromCluster(name string, known *Known) bool {
	for _, template := range known.Templates {
		if template.Name == name || slices.Contains(known.Uses[name], v1alpha1.ResourcePoolTemplateKind+"/"+template.Name) {
			t.Templates = append(t.Templates, template)
		}
	}
	return slices.ContainsFunc(t.Templates, func(template *devices.Template) bool { return template.Name == name })
}

// FromDocuments makes a target of the templates in documents.
func FromDocuments(streams cli.Streams, source string, all []documents.Document) (*Target, error) {
	t := &Target{}
	var err error
	if t.Name, err = t.addDocuments(streams, source, all); err != nil {
		return nil, err
	}
	return t, t.completeTarget(&Known{})
}

// addDocuments adds the templates and DeviceClasses of documents, and returns the name of
// the first template.
func (t *Target) addDocuments(streams cli.Streams, source string, all []documents.Document) (string, error) {
	result := check.Documents(all)
	for _, finding := range result.Problems {
		streams.Tell("%v\n", finding)
	}
	if len(result.Problems) > 0 {
		return "", cli.ErrNegative
	}
	if len(result.Set.Templates) == 0 {
		return "", fmt.Errorf("there is no ResourcePoolTemplate in %s", source)
	}
	objects, err := documents.Objects(all)
	if err != nil {
		return "", err
	}
	var names, classes []string
	others := map[string]int{}
	first := len(t.Objects)
	for _, object := range objects {
		switch object.GetKind() {
		case v1alpha1.ResourcePoolTemplateKind:
			names = append(names, object.GetName())
		case classKind:
			classes = append(classes, objectKey(object))
		default:
			others[object.GetKind()]++
			continue
		}
		t.Objects = append(t.Objects, object.Unstructured)
	}
	for _, object := range t.Objects[first:] {
		if object.GetKind() == v1alpha1.ResourcePoolTemplateKind && len(classes) > 0 {
			_ = unstructured.SetNestedField(object.Object, strings.Join(classes, ","), "metadata", "annotations", v1alpha1.ScaleUsesAnnotation) // metadata has been checked
		}
	}
	if len(others) > 0 {
		streams.Tell("%s: left out %s: only ResourcePoolTemplates and DeviceClasses make a target\n", source, cli.Counted(others))
	}
	t.Templates = append(t.Templates, result.Set.Templates...)
	if len(names) == 0 {
		return "", fmt.Errorf("%s has no ResourcePoolTemplate as a document of its own: a target needs one", source)
	}
	return slices.Min(names), nil
}

// completeTarget chooses the labels of nodes, and makes the pools of one.
func (t *Target) completeTarget(known *Known) error {
	t.labelObjects(known)
	if err := t.chooseLabels(); err != nil {
		return err
	}
	node := t.newNode(t.Prefix() + "-0")
	node.UID = fleet.UID(node.Name)
	without := slices.DeleteFunc(slices.Clone(t.Templates), func(template *devices.Template) bool { return template.DriverPod != nil })
	selected := devices.SelectForNode(without, node)
	for hidden, by := range selected.Hidden {
		return fmt.Errorf("one node cannot have all of %s: templates %s and %s are both for driver %s, and the one with the higher priority counts: leave out one of them", t.Name, hidden.Name, by.Name, hidden.Driver)
	}
	for _, driver := range slices.Sorted(maps.Keys(selected.ByDriver)) {
		pools, refusals, err := devices.PoolsForNode(selected.ByDriver[driver], lifecycle.NewObject(node), nil)
		if err != nil {
			return fmt.Errorf("make the pool of driver %s for a node of %s: %w", driver, t.Name, err)
		}
		if len(refusals) > 0 {
			return fmt.Errorf("one node cannot have all of %s: %w: leave out one of them", t.Name, refusals[0].Err)
		}
		t.Pools = append(t.Pools, pools...)
	}
	return nil
}

// labelObjects drops objects that several parts have, labels the others, and records what nodes use.
func (t *Target) labelObjects(known *Known) {
	seen := map[string]bool{}
	t.Objects = slices.DeleteFunc(t.Objects, func(object *unstructured.Unstructured) bool {
		key := objectKey(object)
		again := seen[key]
		seen[key] = true
		return again
	})
	for _, object := range t.Objects {
		labels := object.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[v1alpha1.ScaleLabel] = ""
		object.SetLabels(labels)
		t.uses = append(t.uses, objectKey(object))
	}
	for _, template := range t.Templates {
		t.uses = append(t.uses, v1alpha1.ResourcePoolTemplateKind+"/"+template.Name)
	}
	t.uses = append(t.uses, known.Uses[t.Name]...)
	slices.Sort(t.uses)
	t.uses = slices.Compact(t.uses)
}

// objectKey names an object as ScaleUsesAnnotation does.
func objectKey(object interface {
	GetName() string
	GetKind() string
},
) string {
	return object.GetKind() + "/" + object.GetName()
}

// Prefix begins the names of the nodes.
func (t *Target) Prefix() string { return strings.ReplaceAll(t.Name, ".", "-") }

// maxName leaves room for the numbers of nodes, whose names are the values of labels too. A longer name
// ends with a hash of all of it.
const maxName = 54

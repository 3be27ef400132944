// Package chart makes the Helm chart out of the kustomizations: its templates are
// what the overlays render, with conditions around what they differ by.
package chart

import (
	"embed"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/kwok-dra/kwok-dra/test/tools/release/overlay"
	"github.com/kwok-dra/kwok-dra/test/tools/release/tarball"
)

// Name is the name of the chart.
const Name = "kwok-dra"

// static are the files that say what the chart is, with holes.
//
//go:embed files
var static embed.FS

// option is a choice of the chart's values that is an overlay, or a component, of
// its own.
type option struct {
	condition string
	overlay   overlay.Variant
}

// options are in the order in which users name components.
var options = []option{
	{`eq .Values.stages "general"`, overlay.Variant{Overlay: "kwok-general"}},
	{`gt (int .Values.replicas) 1`, overlay.Variant{Overlay: "kwok", Components: []string{"replicas"}}},
	{`.Values.secureServing`, overlay.Variant{Overlay: "kwok", Components: []string{"secure-serving"}}},
	{`.Values.containerView`, overlay.Variant{Overlay: "kwok", Components: []string{"container-view"}}},
}

// File is the name of the archive of a version.
func File(version string) string { return Name + "-" + chartVersion(version) + ".tgz" }

// chartVersion is the version as charts have it.
func chartVersion(version string) string { return strings.TrimPrefix(version, "v") }

// Files are the files of the chart of a version.
func Files(c *overlay.Checkout, version string) ([]tarball.Entry, error) {
	usual, err := c.Render(overlay.Variant{Overlay: "kwok", Tag: version})
	if err != nil {
		return nil, err
	}
	var variants []variant[[]overlay.Object]
	for _, o := range options {
		o.overlay.Tag = version
		objects, err := c.Render(o.overlay)
		if err != nil {
			return nil, err
		}
		variants = append(variants, variant[[]overlay.Object]{o.condition, objects})
	}
	made, err := staticFiles(usual, version)
	if err != nil {
		return nil, err
	}
	for i, name := range []string{"fast", "general"} {
		of := [][]overlay.Object{usual, variants[0].value}[i]
		_, stages := overlay.SplitStages(of)
		text, err := overlay.YAML(stages)
		if err != nil {
			return nil, err
		}
		made["stages/"+name+".yaml"] = string(text)
	}
	if err := addObjects(made, usual, variants); err != nil {
		return nil, err
	}
	return archiveEntries(made), nil
}

// archiveEntries has Chart.yaml first, as readers of archives expect.
func archiveEntries(files map[string]string) []tarball.Entry {
	all := []tarball.Entry{{Name: Name + "/Chart.yaml", Content: []byte(files["Chart.yaml"])}}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if file != "Chart.yaml" {
			all = append(all, tarball.Entry{Name: Name + "/" + file, Content: []byte(files[file])})
		}
	}
	return all
}

// staticFiles are the files that are written by hand, with what they take from the
// overlays.
func staticFiles(usual []overlay.Object, version string) (map[string]string, error) {
	values, err := defaultValues(usual)
	if err != nil {
		return nil, err
	}
	filled := strings.NewReplacer(append(values, "<%number%>", chartVersion(version), "<%version%>", version)...)
	made := map[string]string{}
	for _, file := range []string{"Chart.yaml", "README.md", "values.yaml", "values.schema.json", "templates/NOTES.txt", "templates/stages.yaml"} {
		content, err := static.ReadFile("files/" + path.Base(file))
		if err != nil {
			return nil, err
		}
		made[file] = filled.Replace(string(content))
	}
	return made, nil
}

// addObjects adds a file for each object but Stages.
func addObjects(made map[string]string, usual []overlay.Object, variants []variant[[]overlay.Object]) error {
	byID, ids, err := indexObjects(usual)
	if err != nil {
		return err
	}
	var others []variant[map[string]any]
	for _, v := range variants {
		objects, more, err := indexObjects(v.value)
		if err != nil {
			return err
		}
		ids = append(ids, more...)
		others = append(others, variant[map[string]any]{v.condition, objects})
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		var differing []variant[any]
		for _, v := range others {
			differing = append(differing, variant[any]{v.condition, objectOf(v.value, id)})
		}
		text, err := mergeVariants(objectOf(byID, id), differing, 0)
		if err != nil {
			return fmt.Errorf("make the template of %s: %w", id, err)
		}
		made[fileOf(id)] = fill(text)
	}
	return nil
}

// indexObjects are the objects by their IDs, with holes.
func indexObjects(objects []overlay.Object) (map[string]any, []string, error) {
	byID := map[string]any{}
	var ids []string
	objects, _ = overlay.SplitStages(objects)
	for _, object := range objects {
		withHoles, err := cutHoles(object)
		if err != nil {
			return nil, nil, fmt.Errorf("make the template of %s: %w", object.ID(), err)
		}
		byID[object.ID()] = withHoles
		ids = append(ids, object.ID())
	}
	return byID, ids, nil
}

func objectOf(objects map[string]any, id string) any {
	object, has := objects[id]
	if !has {
		return missing{}
	}
	return object
}

// fileOf is the file of an object: Helm applies what is in crds before all else.
func fileOf(id string) string {
	parts := strings.Split(id, "/")
	kind, name := strings.ToLower(parts[len(parts)-3]), parts[len(parts)-1]
	if kind == "customresourcedefinition" {
		return "crds/" + name + ".yaml"
	}
	return "templates/" + kind + "-" + name + ".yaml"
}

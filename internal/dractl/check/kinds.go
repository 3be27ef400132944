package check

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kwokv1alpha1 "sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/dractl/documents"
	"github.com/kwok-dra/kwok-dra/internal/extensions/karpenter/adapters"
	"github.com/kwok-dra/kwok-dra/internal/util/strict"
	"github.com/kwok-dra/kwok-dra/internal/util/suggest"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// apiVersions are those of the kinds that this package checks. config checks kwok-dra's own.
var apiVersions = map[string]string{
	v1alpha1.ResourcePoolTemplateKind: v1alpha1.APIVersion,
	v1alpha1.KwokDRAConfigurationKind: v1alpha1.APIVersion,
	"DRAConfig":                       "test.karpenter.sh/v1alpha1",
	"NodeOverlay":                     "karpenter.sh/v1alpha1",
	kwokv1alpha1.StageKind:            "kwok.x-k8s.io/v1alpha1",
	"ConfigMap":                       "v1",
}

// checkObject checks an object by its kind.
func (c *checker) checkObject(p *place) {
	kind, apiVersion := textAt(p.node, "kind"), textAt(p.node, "apiVersion")
	want, known := apiVersions[kind]
	switch {
	case kind == "" || apiVersion == "" || strings.HasPrefix(apiVersion, v1alpha1.GroupName+"/") || want == v1alpha1.APIVersion:
		if textAt(p.node, "kind") != "" {
			c.recordChecked(p, false) // config compares the names
		}
		c.checkOwnKind(p)
		return
	case !known:
		// A kind that nearly is one that kwok-dra reads is a mistake.
		nearest := suggest.Nearest(kind, slices.Sorted(maps.Keys(apiVersions)))
		if nearest == "" || apiVersion != apiVersions[nearest] {
			c.result.Skipped[kind]++
			return
		}
		c.reportProblems(p, p.objectName(), strict.Problem{Path: "kind", Text: fmt.Sprintf("Unsupported value: %q: did you mean %s?", kind, nearest)})
		return
	case apiVersion != want:
		c.reportProblems(p, p.objectName(), strict.Problem{Path: "apiVersion", Text: fmt.Sprintf("Unsupported value: %q: must be %s", apiVersion, want)})
		return
	}
	switch kind {
	case kwokv1alpha1.StageKind:
		c.recordChecked(p, true)
		stage := &kwokv1alpha1.Stage{}
		document, problems := strict.Parse(p.data)
		problems = append(problems, document.Decode(stage, nil)...)
		for _, problem := range strict.Of(checkStage(stage)) {
			if !problems.Hides(problem.Path) {
				problems = append(problems, problem)
			}
		}
		c.reportProblems(p, p.objectName(), problems...)
	case "ConfigMap":
		c.checkConfigMap(p)
	case "DRAConfig":
		c.checkAdapted(p, adapters.DRAConfig)
	case "NodeOverlay":
		c.checkAdapted(p, adapters.NodeOverlay)
	}
}

// checkAdapted checks a document that an adapter reads.
func (c *checker) checkAdapted(p *place, adapt func(*unstructured.Unstructured) (*config.Adapted, error)) {
	c.recordChecked(p, true)
	object := &unstructured.Unstructured{}
	data, err := sigsyaml.YAMLToJSONStrict(p.data)
	if err == nil {
		err = object.UnmarshalJSON(data)
	}
	if err != nil {
		c.reportProblems(p, p.objectName(), strict.Problem{Path: "", Text: err.Error()})
		return
	}
	adapted, err := adapt(object)
	c.checkAdaptation(p, adapted, err)
}

// checkAdaptation checks the templates that an adapter has made, or reports why it made none.
func (c *checker) checkAdaptation(p *place, adapted *config.Adapted, err error) {
	var problems strict.Problems
	if err != nil && !errors.As(err, &problems) {
		problems = strict.Problems{{Text: err.Error()}}
	}
	c.reportProblems(p, p.objectName(), problems...)
	if err != nil {
		return
	}
	for _, change := range adapted.Changes {
		c.result.Notes = append(c.result.Notes, p.newFinding(p.objectName(), "", change))
	}
	var text bytes.Buffer
	for i := range adapted.Templates {
		adapted.Templates[i].APIVersion, adapted.Templates[i].Kind = v1alpha1.APIVersion, v1alpha1.ResourcePoolTemplateKind
		data, err := json.Marshal(&adapted.Templates[i])
		if err != nil {
			c.reportProblems(p, p.objectName(), strict.Problem{Path: "", Text: err.Error()})
			return
		}
		text.WriteString("---\n" + string(data) + "\n")
	}
	c.checkOwnKind(&place{file: p.file, line: p.lineOf(p.node), data: text.Bytes(), fixed: true})
}

// checkConfigMap checks a ConfigMap that carries documents, one of kwok-dra or one
// that an adapter reads.
func (c *checker) checkConfigMap(p *place) {
	texts := listTexts(p)
	switch {
	case textAt(p.node, "metadata", "name") == "dra-kwok-configmap":
		c.recordChecked(p, true)
		at, text := p, ""
		if inner := texts["config.yaml"]; inner != nil {
			at, text = inner, string(inner.data)
		}
		adapted, err := adapters.ConfigMap(text)
		c.checkAdaptation(at, adapted, err)
	// A text may be in UTF-16.
	case !slices.ContainsFunc(slices.Collect(maps.Values(texts)), func(text *place) bool {
		return ownVersion.Match(bytes.ReplaceAll(text.data, []byte{0}, nil))
	}):
		c.result.Skipped["ConfigMap"]++
	default:
		c.recordChecked(p, true)
		for _, key := range slices.Sorted(maps.Keys(texts)) {
			inner := texts[key]
			for _, document := range documents.Split(p.file, inner.data) {
				c.checkDocument(&place{file: p.file, line: inner.line + document.Line - 1, data: document.Data, fixed: inner.fixed})
			}
		}
	}
}

// listTexts returns the places of the texts of a ConfigMap, by their keys.
func listTexts(p *place) map[string]*place {
	texts := map[string]*place{}
	for _, in := range []string{"data", "binaryData"} {
		data := valueAt(p.node, in)
		for i := 0; data != nil && i+1 < len(data.Content); i += 2 {
			key := data.Content[i].Value
			value := valueAt(p.node, in, key)
			inner := &place{file: p.file, line: p.lineOf(value), data: []byte(value.Value), name: p.objectName(), fixed: true}
			if decoded, err := base64.StdEncoding.DecodeString(value.Value); err == nil && in == "binaryData" {
				inner.data = decoded
			} else if value.Style == yaml.LiteralStyle && !p.fixed {
				inner.line, inner.fixed = inner.line+1, false
			}
			var root yaml.Node
			if err := yaml.Unmarshal(inner.data, &root); err == nil && len(root.Content) > 0 {
				inner.node = root.Content[0]
			}
			texts[key] = inner
		}
	}
	return texts
}

// ownVersion finds the apiVersion of a document of kwok-dra, in YAML or JSON, even if the text is invalid.
var ownVersion = regexp.MustCompile(`\bapiVersion["']?\s*:\s*["']?` + regexp.QuoteMeta(v1alpha1.GroupName) + `/`)

package docs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/internal/dractl/check"
	"github.com/kwok-dra/kwok-dra/internal/dractl/documents"
	"github.com/kwok-dra/kwok-dra/test/e2e/docs/page"
)

// TestDocuments checks the documents that no command of a page reads.
func TestDocuments(t *testing.T) {
	t.Parallel()
	for path, read := range readPages(t) {
		for _, step := range read.Steps {
			if step.Kind != page.Document || step.Skip != "" {
				continue
			}
			for _, problem := range problems(path, step) {
				t.Error(problem)
			}
		}
	}
}

// problems are what is wrong with the documents of a block.
func problems(path string, step page.Step) []string {
	var all []string
	for _, document := range documents.Split(path, []byte(step.Text)) {
		document.Line += step.Line
		result := check.Documents([]documents.Document{document})
		for _, found := range result.Problems {
			all = append(all, found.String())
		}
		if len(result.Problems)+len(result.Checked) > 0 {
			continue
		}
		if err := decode(document.Data); err != nil {
			all = append(all, fmt.Sprintf("%s:%d: %v", path, document.Line, err))
		}
	}
	return all
}

// decode reads a document of Kubernetes or of kustomize, and refuses fields that
// its kind does not have.
func decode(data []byte) error {
	var meta metav1.TypeMeta
	if err := yaml.Unmarshal(data, &meta); err != nil {
		return err
	}
	kind := schema.FromAPIVersionAndKind(meta.APIVersion, meta.Kind)
	switch {
	case kind.Group == "kustomize.config.k8s.io":
		return yaml.UnmarshalStrict(data, &types.Kustomization{})
	case !scheme.Scheme.Recognizes(kind):
		return fmt.Errorf("kind %q of %q is not known here: correct it, or skip the block with a reason", meta.Kind, meta.APIVersion)
	}
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{Yaml: true, Strict: true})
	_, _, err := strict.Decode(data, nil, nil)
	return err
}

func TestWrongDocuments(t *testing.T) {
	t.Parallel()
	const template = "apiVersion: dra.kwok.x-k8s.io/v1alpha1\nkind: ResourcePoolTemplate\nmetadata: {name: a}\nspec:\n  driver: gpu.example.com\n  devices:\n  - name: gpu\n"
	for name, test := range map[string]struct{ text, want string }{
		"a template":                 {template, ""},
		"a wrong template":           {template + "    cuont: 8\n", "page.md:18: ResourcePoolTemplate \"a\": spec.devices[0].cuont"},
		"a wrong second template":    {template + "---\n" + strings.Replace(template, "devices", "device", 1), "spec.device"},
		"a Pod":                      {"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n", ""},
		"a wrong Pod":                {"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {container: []}\n", `page.md:11: strict decoding error: unknown field "spec.container"`},
		"a Kustomization":            {"apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a]\n", ""},
		"a wrong Kustomization":      {"apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresource: [a]\n", `unknown field "resource"`},
		"something of others":        {"apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\n", `page.md:11: kind "ClusterQueue" of "kueue.x-k8s.io/v1beta1" is not known here`},
		"a fragment":                 {"spec:\n  driver: gpu.example.com\n", "page.md:11: "},
		"a Stage":                    {"apiVersion: kwok.x-k8s.io/v1alpha1\nkind: Stage\nmetadata: {name: a}\nspec:\n  resourceRef: {kind: Node}\n  selector: {matchExpressions: [{key: '.metadata[', operator: Exists}]}\n", "page.md:1"},
		"a ConfigMap of others":      {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b}\n", ""},
		"a wrong ConfigMap":          {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndate: {a: b}\n", `unknown field "date"`},
		"a text that is not YAML":    {"a: b: c\n", "page.md:1"},
		"a ConfigMap with templates": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  a: |\n    " + strings.ReplaceAll(template, "\n", "\n    ") + "\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := strings.Join(problems("page.md", page.Step{Kind: page.Document, Line: 10, Text: test.text}), "\n")
			if test.want == "" {
				require.Empty(t, found)
				return
			}
			require.Contains(t, found, test.want)
		})
	}
}

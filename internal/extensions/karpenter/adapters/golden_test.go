package adapters

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/internal/config"
)

var update = flag.Bool("update", false, "write the outputs in testdata anew")

// adapters are the three by the names that files in testdata begin with.
var adapters = map[string]func(t testing.TB, text string) (*config.Adapted, error){
	"configmap":   func(_ testing.TB, text string) (*config.Adapted, error) { return ConfigMap(text) },
	"draconfig":   func(t testing.TB, text string) (*config.Adapted, error) { return DRAConfig(object(t, text)) },
	"nodeoverlay": func(t testing.TB, text string) (*config.Adapted, error) { return NodeOverlay(object(t, text)) },
}

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	source := &unstructured.Unstructured{}
	require.NoError(t, source.UnmarshalJSON(data))
	return source
}

// written is all of an Adapted as YAML: the changes as comments, then classes and
// templates.
func written(a *config.Adapted, t testing.TB) string {
	t.Helper()
	var text strings.Builder
	for _, change := range a.Changes {
		text.WriteString("# " + change + "\n")
	}
	var documents []any
	for i := range a.Classes {
		documents = append(documents, a.Classes[i])
	}
	for i := range a.Templates {
		documents = append(documents, a.Templates[i])
	}
	for _, document := range documents {
		data, err := yaml.Marshal(document)
		require.NoError(t, err)
		text.WriteString("---\n" + string(data))
	}
	return text.String()
}

// inputs are the documents in testdata/accepted.
func inputs(t testing.TB, adapter string) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/accepted/" + adapter + "-*.input.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	documents := map[string]string{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		documents[strings.TrimSuffix(filepath.Base(file), ".input.yaml")] = string(data)
	}
	return documents
}

// TestAccepted holds what becomes of good documents, field by field.
func TestAccepted(t *testing.T) {
	for adapter, adapt := range adapters {
		for name, text := range inputs(t, adapter) {
			t.Run(name, func(t *testing.T) {
				adapted, err := adapt(t, text)
				require.NoError(t, err)
				got, file := written(adapted, t), "testdata/accepted/"+name+".output.yaml"
				if *update {
					require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
				}
				want, err := os.ReadFile(file)
				require.NoError(t, err)
				require.Equal(t, string(want), got)
			})
		}
	}
}

// TestRefused holds every word of what is said of bad documents.
func TestRefused(t *testing.T) {
	for adapter, adapt := range adapters {
		file := "testdata/refused/" + adapter + ".txt"
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		head, rest, _ := strings.Cut(string(data), "=== ")
		again := head
		for text := range strings.SplitSeq(rest, "\n=== ") {
			name, body, _ := strings.Cut(text, "\n")
			input, want, _ := strings.Cut(body+"\n", "=>\n")
			_, err := adapt(t, whole(adapter, input))
			again += "=== " + name + "\n" + input + "=>\n"
			if err != nil {
				again += err.Error() + "\n\n"
			}
			t.Run(adapter+"/"+name, func(t *testing.T) {
				require.Error(t, err)
				require.NotContains(t, err.Error(), "regex")
				if !*update {
					require.Equal(t, strings.TrimSpace(want), err.Error())
				}
			})
		}
		if *update {
			require.NoError(t, os.WriteFile(file, []byte(strings.TrimRight(again, "\n")+"\n"), 0o600))
		}
	}
}

// whole makes a document of a part: of the devices of a mapping or of a pool, of a
// list of slices, or of a spec.
func whole(adapter, input string) string {
	indented := func(blanks string) string {
		return blanks + strings.ReplaceAll(strings.TrimSuffix(input, "\n"), "\n", "\n"+blanks) + "\n"
	}
	isList := strings.HasPrefix(input, "- ")
	switch {
	case adapter == "configmap" && isList:
		return "driver: d.example.com\nmappings:\n- name: m\n  nodeSelector: {matchLabels: {a: b}}\n  resourceSlice:\n    devices:\n" + indented("    ")
	case adapter == "configmap":
		return input
	case adapter == "draconfig" && isList:
		return "kind: DRAConfig\nmetadata: {name: c}\nspec:\n  driver: d.example.com\n  pools:\n  - name: p\n    nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]\n    resourceSlices:\n    - devices:\n" + indented("      ")
	case isList:
		return "kind: NodeOverlay\nmetadata:\n  name: o\n  annotations:\n    dra.kwok.x-k8s.io/resource-slices: |\n" + indented("      ") + "spec: {requirements: []}\n"
	case strings.HasPrefix(input, "kind:"):
		return input
	}
	return "kind: X\nmetadata: {name: c}\nspec:\n" + indented("  ")
}

package adapters

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// FuzzConfigMap: no text makes the adapter panic, and what is adapted can be
// rendered.
func FuzzConfigMap(f *testing.F) {
	for _, text := range seeds(f, "configmap") {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		adapted, err := ConfigMap(text)
		requireSound(t, adapted, err)
	})
}

// FuzzDRAConfig: no spec does either.
func FuzzDRAConfig(f *testing.F) {
	for _, text := range seeds(f, "draconfig") {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if source := fuzzed(text); source != nil {
			adapted, err := DRAConfig(source)
			requireSound(t, adapted, err)
		}
	})
}

// FuzzNodeOverlay: nor does a spec or an annotation.
func FuzzNodeOverlay(f *testing.F) {
	for _, text := range seeds(f, "nodeoverlay") {
		annotation := object(f, text).GetAnnotations()[v1alpha1.ResourceSlicesAnnotation]
		f.Add(text, annotation)
	}
	f.Fuzz(func(t *testing.T, text, annotation string) {
		source := fuzzed(text)
		if source == nil {
			return
		}
		source.SetName("o")
		source.SetAnnotations(map[string]string{v1alpha1.ResourceSlicesAnnotation: annotation})
		adapted, err := NodeOverlay(source)
		requireSound(t, adapted, err)
	})
}

// fuzzed is an object as the API server would have it, or nil.
func fuzzed(text string) *unstructured.Unstructured {
	data, err := yaml.YAMLToJSON([]byte(text))
	source := &unstructured.Unstructured{}
	if err != nil || source.UnmarshalJSON(data) != nil || source.IsList() {
		return nil
	}
	return source
}

// requireSound wants templates that pass as those of a user, and that render for
// a node.
func requireSound(t *testing.T, adapted *config.Adapted, err error) {
	t.Helper()
	if err != nil {
		require.Nil(t, adapted)
		require.NotEmpty(t, err.Error())
		return
	}
	names := map[string]bool{}
	for i := range adapted.Templates {
		template := &adapted.Templates[i]
		require.False(t, names[template.Name], template.Name)
		names[template.Name] = true
		compiled, errs := devices.Compile(template)
		require.Empty(t, errs)
		_, _, err := devices.PoolsForNode([]*devices.Template{compiled}, lifecycle.NewObject(newNode("kwok-node")), nil)
		require.NoError(t, err)
	}
}

// seeds are documents good and bad.
func seeds(t testing.TB, adapter string) []string {
	t.Helper()
	var documents []string
	for _, text := range inputs(t, adapter) {
		documents = append(documents, text)
	}
	data, err := os.ReadFile("testdata/refused/" + adapter + ".txt")
	require.NoError(t, err)
	for text := range strings.SplitSeq(string(data), "\n=== ") {
		_, body, _ := strings.Cut(text, "\n")
		input, _, _ := strings.Cut(body, "=>\n")
		if document := whole(adapter, input); adapter == "configmap" || fuzzed(document) != nil {
			documents = append(documents, document)
		}
	}
	return documents
}

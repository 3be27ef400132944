package config

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/internal/util/strict"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// patienceWithOne is how long one document may take, on a machine that has much
// else to do.
const patienceWithOne = time.Minute

// FuzzDecode: no text makes decoding panic or take for ever, and what is decoded
// is the same when it is encoded and decoded again.
func FuzzDecode(f *testing.F) {
	for _, document := range seeds(f) {
		f.Add([]byte(document))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		start := time.Now()
		documents, err := Decode("f", data)
		require.Less(t, time.Since(start), patienceWithOne)
		if err == nil {
			require.NotNil(t, documents)
			requireRoundTrip(t, data)
		}
	})
}

// seeds are documents good and bad.
func seeds(t testing.TB) []string {
	t.Helper()
	accepted, err := os.ReadFile("testdata/accepted.yaml")
	require.NoError(t, err)
	documents := append(strings.Split(string(accepted), "\n---\n"), string(accepted), "---\n...\n", `{"a": 1}`)
	data, err := os.ReadFile(refusedFile)
	require.NoError(t, err)
	for text := range strings.SplitSeq(string(data), "\n=== ") {
		_, body, _ := strings.Cut(text, "\n")
		input, _, _ := strings.Cut(body, "=>\n")
		documents = append(documents, refused(input))
	}
	return documents
}

// requireRoundTrip decodes a document again from what it is encoded to.
func requireRoundTrip(t *testing.T, data []byte) {
	t.Helper()
	document, problems := strict.Parse(data)
	object, isObject := document.Value.(map[string]any)
	if _, isList := document.Items(); len(problems) > 0 || !isObject || isList {
		return
	}
	var into, again any = &v1alpha1.ResourcePoolTemplate{}, &v1alpha1.ResourcePoolTemplate{}
	if object["kind"] == v1alpha1.KwokDRAConfigurationKind {
		into, again = &v1alpha1.KwokDRAConfiguration{}, &v1alpha1.KwokDRAConfiguration{}
	}
	require.Empty(t, document.Decode(into, nil))
	encoded, err := yaml.Marshal(into)
	require.NoError(t, err)
	document, problems = strict.Parse(encoded)
	require.Empty(t, problems)
	require.Empty(t, document.Decode(again, nil), "%s", encoded)
	want, err := json.Marshal(into)
	require.NoError(t, err)
	got, err := json.Marshal(again)
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(got))
}

// TestAccepted: documents with every field are taken, and survive a round trip.
func TestAccepted(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/accepted.yaml")
	require.NoError(t, err)
	documents := decode(t, string(data))
	require.Equal(t, []string{"dgx", "fabric", "storage"}, templateNames(documents))
	require.Len(t, documents.configurations, 1)
	for document := range strings.SplitSeq(string(data), "\n---\n") {
		requireRoundTrip(t, []byte(document))
	}
}

package waiting

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// asker is the name of the Pod that waits in each case.
const asker = "train"

// waitingCase is a line of testdata/cases.yaml, which describes the fields.
type waitingCase struct {
	Name      string `json:"name"`
	Link      string `json:"link"`
	Cluster   string `json:"cluster"`
	Asks      string `json:"asks"`
	Reason    string `json:"reason"`
	FirstLine string `json:"firstLine"`
	Since     int    `json:"since"`
	Scheduler string `json:"scheduler"`
}

// The values of waitingCase.Scheduler.
const (
	refuses  = ""
	binds    = "binds"
	notAsked = "is not asked"
)

// document is an object of a case, or the deletion of one.
type document struct {
	// Delete is the kind and name of an object to delete, and GracePeriodSeconds how long it may take,
	// or nil for the default.
	Delete             string
	GracePeriodSeconds *int64
	Object             *metav1.Unstructured
}

func readCases(t *testing.T) []waitingCase {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", "cases.yaml"))
	require.NoError(t, err)
	var cases []waitingCase
	require.NoError(t, yaml.UnmarshalStrict(content, &cases))
	return cases
}

// readDocuments reads the objects of a case, in the order in which they come into the cluster.
func readDocuments(t *testing.T, name string) []document {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
	require.NoError(t, err)
	var documents []document
	for decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096); ; {
		object := &metav1.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return documents
		}
		require.NoError(t, err)
		deleted, _, err := metav1.NestedString(object.Object, "delete")
		require.NoError(t, err)
		d := document{Delete: deleted, Object: object}
		if seconds, found, err := metav1.NestedInt64(object.Object, "gracePeriodSeconds"); found && err == nil {
			d.GracePeriodSeconds = &seconds
		}
		documents = append(documents, d)
	}
}

// TestCorpus checks the table: each case has its file, and at least half are from public reports.
func TestCorpus(t *testing.T) {
	t.Parallel()
	cases := readCases(t)
	files, err := filepath.Glob(filepath.Join("testdata", "*.yaml"))
	require.NoError(t, err)
	require.Len(t, files, len(cases)+1)
	require.GreaterOrEqual(t, len(cases), 40)
	linked := 0
	seen := map[string]bool{}
	for _, c := range cases {
		require.False(t, seen[c.Name], c.Name)
		seen[c.Name] = true
		require.NotEmpty(t, c.Cluster, c.Name)
		require.NotEmpty(t, c.Asks, c.Name)
		require.NotEmpty(t, c.Reason, c.Name)
		require.Contains(t, c.FirstLine, "Pod "+c.Name+"/"+asker, c.Name)
		require.Contains(t, []string{refuses, binds, notAsked}, c.Scheduler, c.Name)
		require.NotEmpty(t, readDocuments(t, c.Name), c.Name)
		if strings.HasPrefix(c.Link, "https://") {
			linked++
		}
	}
	require.GreaterOrEqual(t, linked*2, len(cases))
}

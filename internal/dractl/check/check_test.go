package check

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/documents"
)

func checked(t *testing.T, file, text string) *Result {
	t.Helper()
	return Documents(documents.Split(file, []byte(text)))
}

func lines(findings []Finding) []string {
	var all []string
	for _, finding := range findings {
		all = append(all, finding.String())
	}
	return all
}

// TestInvalid: all that is wrong with a file, and where.
func TestInvalid(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/invalid.yaml")
	require.NoError(t, err)
	want, err := os.ReadFile("testdata/invalid.txt")
	require.NoError(t, err)
	result := checked(t, "invalid.yaml", string(text))
	require.Equal(t, strings.Split(strings.TrimSpace(string(want)), "\n"), lines(result.Problems))
	require.Empty(t, result.Notes)
	require.Equal(t, map[string]int{"Pod": 1}, result.Skipped)
	require.Nil(t, result.Set)
}

// TestLines: where a problem is said to be, for every way to write a document.
func TestLines(t *testing.T) {
	t.Parallel()
	const template = "apiVersion: dra.kwok.x-k8s.io/v1alpha1\nkind: ResourcePoolTemplate\nmetadata: {name: a}\nspec:\n  driver: d\n"
	for name, test := range map[string]struct {
		text string
		line int
	}{
		"block":              {template + "  devices:\n  - name: a\n    count: 0\n", 8},
		"flow":               {template + "  devices: [{name: a,\n    count: 0}]\n", 7},
		"missing":            {template, 4},
		"missing at the top": {"a: 1\n---\nkind: ResourcePoolTemplate\nb: 1\n", 1},
		"after comments":     {"# one\n\n---\n# two\n" + template + "  devices: [{name: A}]", 10},
		"alias":              {"x: &x\n  count: 0\n---\n" + template + "  devices:\n  - &d {name: a,\n     count: 0}\n  - *d\n", 11},
		"JSON":               {"{\"apiVersion\": \"dra.kwok.x-k8s.io/v1alpha1\",\n\"kind\": \"ResourcePoolTemplate\",\n\"metadata\": {\"name\": \"a\"},\n\"spec\": {\"driver\": \"d\",\n\"devices\": [{\"name\": \"A\"}]}}", 5},
		"qualified key":      {template + "  devices:\n  - name: a\n    attributes:\n      example.com/b: x\n      example.com/c: [1, a]\n", 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := checked(t, "f", test.text)
			require.NotEmpty(t, result.Problems)
			found := false
			for _, problem := range result.Problems {
				found = found || problem.Line == test.line
			}
			require.True(t, found, "%v", lines(result.Problems))
		})
	}
}

// TestOwn: what the project ships is valid.
func TestOwn(t *testing.T) {
	t.Parallel()
	counts := map[string]int{}
	for _, pattern := range []string{
		"../../../kustomize/profiles/*/*template.yaml", "../../../kustomize/profiles/*/*/*template.yaml", "../../../stages/*/*/*.yaml",
	} {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, path := range paths {
			all, err := (&documents.Files{Paths: []string{path}}).Read(cli.Streams{})
			require.NoError(t, err)
			result := Documents(all)
			require.Empty(t, lines(result.Problems))
			for _, checked := range result.Checked {
				counts[checked.Kind]++
			}
		}
	}
	require.Greater(t, counts["ResourcePoolTemplate"], 12)
	require.Greater(t, counts["Stage"], 10)
	require.Greater(t, counts["KwokDRAConfiguration"], 1)
}

func TestNothingToCheck(t *testing.T) {
	t.Parallel()
	require.ErrorIs(t, checked(t, "f", "apiVersion: v1\nkind: Pod\n").Err(), errEmpty)
	require.NoError(t, checked(t, "f", "a: 1").Err())
	for path, want := range map[string][]string{
		"":                                   nil,
		"spec":                               {"spec"},
		"spec.devices[0].attributes[a.b/c]":  {"spec", "devices", "0", "attributes", "a.b/c"},
		"spec.devices[0].attributes[a].int":  {"spec", "devices", "0", "attributes", "a", "int"},
		"mappings[0].resourceSlice.devices[": {"mappings", "0", "resourceSlice", "devices", ""},
	} {
		require.Equal(t, want, splitPath(path))
	}
}

// TestConfigMapOfJSON: a template in JSON, or with quotes, is checked like one in YAML.
func TestConfigMapOfJSON(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"apiVersion":"dra.kwok.x-k8s.io/v1alpha1","kind":"ResourcePoolTemplate","metadata":{"name":"a_"},"spec":{"driver":"d","devices":[{"name":"a"}]}}`,
		`{"apiVersion" : "dra.kwok.x-k8s.io/v1alpha1", "kind": "ResourcePoolTemplate", "metadata": {"name": "a_"}, "spec": {"driver": "d", "devices": [{"name": "a"}]}}`,
		"\"apiVersion\": \"dra.kwok.x-k8s.io/v1alpha1\"\n    kind: ResourcePoolTemplate\n    metadata: {name: a_}\n    spec: {driver: d, devices: [{name: a}]}",
	} {
		result := checked(t, "f", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata:\n  a.json: |\n    "+text+"\n")
		require.Len(t, result.Problems, 1, text)
		require.Contains(t, result.Problems[0].String(), "metadata.name: Invalid value")
	}
}

// TestBinaryData: what a ConfigMap has under binaryData is checked like its data.
func TestBinaryData(t *testing.T) {
	t.Parallel()
	const template = "apiVersion: dra.kwok.x-k8s.io/v1alpha1\nkind: ResourcePoolTemplate\nmetadata: {name: a}\nspec: {driver: d, devices: [{name: a}]}\n"
	carried := func(text string) *Result {
		return checked(t, "f", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\nbinaryData:\n  a.yaml: "+base64.StdEncoding.EncodeToString([]byte(text))+"\n")
	}
	require.Len(t, carried(template).Set.Templates, 1)
	require.Equal(t, map[string]int{"ConfigMap": 1}, carried("\x89PNG").Skipped)
	for text, want := range map[string]string{
		template + "# f\xfcr\n": "f:5: the byte 0xfc at offset 129 is not UTF-8: save the text as UTF-8, for example with iconv -f latin1 -t utf-8",
	} {
		require.Equal(t, []string{want}, lines(carried(text).Problems))
	}
}

// TestEveryObject: of several objects in a text none is passed over, whatever they
// are put together by.
func TestEveryObject(t *testing.T) {
	t.Parallel()
	const one = `{"apiVersion": "dra.kwok.x-k8s.io/v1alpha1", "kind": "ResourcePoolTemplate", "metadata": {"name": "a"}, "spec": {"driver": "d.example.com", "devices": [{"name": "gpu"}]}}`
	bad := strings.NewReplacer(`"a"`, `"b"`, `"gpu"`, `"GPU_0"`).Replace(one)
	bare := strings.Replace(bad, `"apiVersion": "dra.kwok.x-k8s.io/v1alpha1", "kind": "ResourcePoolTemplate", `, "", 1)
	list := func(kind, items string) string { return `{"apiVersion": "` + kind + `", "items": [` + items + `]}` }
	const templates = `dra.kwok.x-k8s.io/v1alpha1", "kind": "ResourcePoolTemplateList`
	for name, text := range map[string]string{
		"JSON values":       one + "\n" + bad,
		"after comments":    "# one\n" + one + "\n# two\n" + bad,
		"separators":        one + "\n---\n" + bad,
		"on the same line":  one + "\n--- " + bad,
		"Windows":           "\uFEFF" + one + "\r\n---\r\n" + bad,
		"list":              list(`v1", "kind": "List`, one+","+bad),
		"list of one kind":  list(templates, one+","+bare),
		"lists in a list":   list(`v1", "kind": "List`, list(templates, one)+","+list(templates, bare)),
		"lists as a stream": list(templates, one) + list(templates, bare),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := checked(t, "f", text)
			require.Len(t, result.Checked, 2)
			require.Len(t, result.Problems, 1)
			require.Equal(t, "spec.devices[0].name", result.Problems[0].Field)
		})
	}
	result := checked(t, "f", "a: 1\n---\n{kind: ResourcePoolTemplate}\n{kind: Pod}\n")
	require.Contains(t, lines(result.Problems), "f:3: there is text after the end of the document: begin a document with the line ---")
}

// TestTwoNames: a template may have an attribute under two names that are one to CEL.
func TestTwoNames(t *testing.T) {
	t.Parallel()
	result := checked(t, "f", `apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: twice}
spec:
  driver: gpu.example.com
  devices:
  - name: gpu
    attributes:
      model: plain
      gpu.example.com/model: qualified
      gpu.example.com/productName: only qualified
      nic.example.com/model: of another
    capacity: {gpu.example.com/memory: 40Gi, memory: 40Gi}
    counters: {memory: 40Gi}
    partitions:
    - name: mig
      count: 2
      consumes: {memory: 20Gi}
      attributes: {productName: part}
`)
	require.Empty(t, lines(result.Problems))
	const text = ", and CEL takes both for one: which value it sees is chance; leave one out"
	require.Equal(t, []string{
		`f:9: ResourcePoolTemplate "twice": spec.devices[0].attributes[model]: also there as gpu.example.com/model` + text,
		`f:13: ResourcePoolTemplate "twice": spec.devices[0].capacity[memory]: also there as gpu.example.com/memory` + text,
		`f:19: ResourcePoolTemplate "twice": spec.devices[0].partitions[0].attributes[productName]: also there as gpu.example.com/productName` + text,
	}, lines(result.Notes))
}

// TestQuotedValues: what is a string only because of its quotes is said with its fix; what says
// that it is a string is not.
func TestQuotedValues(t *testing.T) {
	t.Parallel()
	result := Documents(documents.Split("f", []byte(`apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: quoted}
spec:
  driver: gpu.example.com
  devices:
  - name: gpu
    count: 2
    attributes:
      numaNode: "1"
      index: "{{ .Index }}"
      half: "{{ div .Index 2 }}"
      ecc: 'true'
      serials: ["1", "2"]
      plain: 1
      typed: {int: "{{ .Index }}"}
      vendor: {string: "8086"}
      label: "gpu-{{ .Index }}"
      text: '{{ printf "%x" .Index }}'
      model: H100
`)))
	require.Empty(t, result.Problems)
	var notes []string
	for _, note := range result.Notes {
		notes = append(notes, note.String())
	}
	const template = "a template yields a string, which no selector finds equal to a number: write "
	require.Equal(t, []string{
		`f:10: ResourcePoolTemplate "quoted": spec.devices[0].attributes[numaNode]: "1" is a string, which no selector finds equal to the number: write 1, or {string: "1"} if a string is meant`,
		`f:11: ResourcePoolTemplate "quoted": spec.devices[0].attributes[index]: ` + template + `{int: "{{ .Index }}"}, or {string: "{{ .Index }}"} if a string is meant`,
		`f:12: ResourcePoolTemplate "quoted": spec.devices[0].attributes[half]: ` + template + `{int: "{{ div .Index 2 }}"}, or {string: "{{ div .Index 2 }}"} if a string is meant`,
		`f:13: ResourcePoolTemplate "quoted": spec.devices[0].attributes[ecc]: "true" is a string, which no selector finds equal to the bool: write true, or {string: "true"} if a string is meant`,
		`f:14: ResourcePoolTemplate "quoted": spec.devices[0].attributes[serials]: a list of strings: "1" is a string, which no selector finds equal to the number: write 1, or {string: "1"} if a string is meant`,
	}, notes)
}

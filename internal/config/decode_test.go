package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

const header = "apiVersion: dra.kwok.x-k8s.io/v1alpha1\n"

// template is a document with a ResourcePoolTemplate. More is put into its spec.
func template(name string, more ...string) string {
	return header + "kind: ResourcePoolTemplate\nmetadata: {name: " + name + "}\nspec:\n  driver: d\n  devices: [{name: gpu}]\n" + strings.Join(more, "")
}

func configured(name string, spec string) string {
	return header + "kind: KwokDRAConfiguration\nmetadata: {name: " + name + "}\nspec: {" + spec + "}\n"
}

func decode(t testing.TB, text string) *Documents {
	t.Helper()
	documents, err := Decode("file.yaml", []byte(text))
	require.NoError(t, err)
	return documents
}

func templateNames(documents *Documents) []string {
	names := []string{}
	for _, t := range documents.templates {
		names = append(names, t.value.Name)
	}
	return names
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text           string
		want           []string
		configurations int
	}{
		"nothing":               {"", []string{}, 0},
		"blank":                 {"\n  \n\n", []string{}, 0},
		"comments only":         {"# a\n# b\n", []string{}, 0},
		"separators only":       {"---\n---\n---\n", []string{}, 0},
		"one":                   {template("a"), []string{"a"}, 0},
		"no newline at the end": {strings.TrimSpace(template("a")), []string{"a"}, 0},
		"two":                   {template("a") + "---\n" + template("b"), []string{"a", "b"}, 0},
		"leading separator":     {"---\n" + template("a"), []string{"a"}, 0},
		"empty between":         {template("a") + "---\n---\n# nothing\n---\n" + template("b"), []string{"a", "b"}, 0},
		"comment at separator":  {template("a") + "--- # second\n" + template("b"), []string{"a", "b"}, 0},
		"windows":               {strings.ReplaceAll(template("a")+"---\n"+template("b"), "\n", "\r\n"), []string{"a", "b"}, 0},
		"separator in a text":   {template("a", "  poolName: \"{{ .Node.metadata.name }}\" # ---\n"), []string{"a"}, 0},
		"ended document":        {template("a") + "...\n---\n" + template("b"), []string{"a", "b"}, 0},
		"ended file":            {template("a") + "...\n", []string{"a"}, 0},
		"ended with a comment":  {template("a") + "...  \n\n  # done\n", []string{"a"}, 0},
		"dots in a text":        {template("a", "  poolName: a.b/{{ .Node.metadata.name }} # ...\n"), []string{"a"}, 0},
		"both kinds":            {configured("c", "") + "---\n" + template("a"), []string{"a"}, 1},
		"JSON":                  {"{\"apiVersion\": \"dra.kwok.x-k8s.io/v1alpha1\",\n\t\"kind\": \"ResourcePoolTemplate\", \"metadata\": {\"name\": \"a\"},\n\t\"spec\": {\"driver\": \"d\", \"devices\": [{\"name\": \"gpu\"}]}}", []string{"a"}, 0},
		"anchors":               {template("a", "  publishWhen: &x {matchLabels: {a: b}}\n  retireWhen: *x\n"), []string{"a"}, 0},
		"labels and such":       {strings.Replace(template("a"), "{name: a}", "{name: a, labels: {x: w}, namespace: ns}", 1), []string{"a"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := decode(t, test.text)
			require.Equal(t, test.want, templateNames(got))
			require.Len(t, got.configurations, test.configurations)
		})
	}
}

// TestDecodeRefuses has what is about documents rather than fields, of which
// testdata/refused.txt has more.
func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"unknown deep field":   {strings.Replace(template("a"), "{name: gpu}", "{name: gpu, cuont: 8}", 1), `file.yaml, document 1: ResourcePoolTemplate "a": spec.devices[0].cuont: Unknown field: did you mean count?`},
		"field of the kind":    {template("a") + "Spec: {}\n", `ResourcePoolTemplate "a": Spec: Unknown field: did you mean spec?`},
		"duplicate key":        {template("a", "  driver: e\n"), `file.yaml, document 1: ResourcePoolTemplate "a": line 7 of the document: the field "driver" is there twice: remove one`},
		"duplicate JSON key":   {`{"apiVersion": "dra.kwok.x-k8s.io/v1alpha1", "kind": "ResourcePoolTemplate", "kind": "ResourcePoolTemplate"}`, `the field "kind" is there twice: remove one`},
		"wrong kind":           {header + "kind: Pod\n", `file.yaml, document 1: kind: Unsupported value: "Pod": must be ResourcePoolTemplate or KwokDRAConfiguration`},
		"kind in wrong case":   {header + "Kind: ResourcePoolTemplate\n", `file.yaml, document 1: kind: Required value: must be ResourcePoolTemplate or KwokDRAConfiguration`},
		"kind as a list":       {header + "kind: [ResourcePoolTemplate]\n", `file.yaml, document 1: kind: Unsupported value: ["ResourcePoolTemplate"]: must be`},
		"wrong apiVersion":     {"apiVersion: v1\nkind: Pod\n", "file.yaml, document 1: kind: this is a Pod: kubectl apply it"},
		"empty object":         {"{}", `file.yaml, document 1: apiVersion: Required value: must be dra.kwok.x-k8s.io/v1alpha1`},
		"list":                 {"[]", "file.yaml, document 1: not an object with apiVersion and kind: []"},
		"text":                 {"hello", `file.yaml, document 1: not an object with apiVersion and kind: "hello"`},
		"long text":            {strings.Repeat("ä", 1000), `kind: "` + strings.Repeat("ä", 49) + "..."},
		"no YAML":              {"a: [", "file.yaml, document 1: line 1 of the document: no valid YAML: did not find expected node content"},
		"infinite":             {template("a", "  priority: .inf\n"), "file.yaml, document 1: no valid YAML: json: unsupported value: +Inf"},
		"second":               {template("a") + "---\nkind: Pod\n", "file.yaml, document 2: apiVersion"},
		"third, after comment": {template("a") + "---\n# none\n---\nkind: Pod\n", "file.yaml, document 3: apiVersion"},
		"second after an end":  {template("a") + "...\n# b\n" + template("b"), "file.yaml, document 1: there is text after the end of the document"},
		"no separator":         {template("a") + "--- hello\n", `file.yaml, document 2: not an object with apiVersion and kind: "hello"`},
		"configuration, jq":    {configured("c", "retireWhen: {matchExpressions: [{key: '[', operator: Exists}]}"), `spec.retireWhen.matchExpressions[0]`},
		"configuration, pod":   {configured("c", "failWhen: {matchExpressions: [{cel: {expression: self.status.capacity}}]}"), `spec.failWhen.matchExpressions[0]`},
		"nameless":             {configured("''", ""), `KwokDRAConfiguration "": metadata.name: Required value`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Decode("file.yaml", []byte(test.text))
			require.ErrorContains(t, err, test.want)
		})
	}
}

// TestDecodeReportsEveryProblem: one look at the error is to be enough.
func TestDecodeReportsEveryProblem(t *testing.T) {
	t.Parallel()
	text := strings.Join([]string{
		"kind: Pod\n",
		template("good"),
		template("a", "  one: 1\n  two: 2\n"),
		strings.Replace(template("b"), "driver: d\n  devices: [{name: gpu}]", "driver: D_\n  devices: [{name: GPU, count: 0}, {name: X}]", 1),
		configured("''", "publishWhen: {matchExpressions: [{key: '[', operator: Exists}, {}]}"),
		"a: [",
	}, "---\n")
	documents, err := Decode("file.yaml", []byte(text))
	for _, want := range []string{
		"document 1: apiVersion", `document 3: ResourcePoolTemplate "a"`, "spec.one", "spec.two", `document 4: ResourcePoolTemplate "b"`,
		"spec.driver", "spec.devices[0].count", "spec.devices[1].name", "document 5", "metadata.name", "matchExpressions[0]", "matchExpressions[1]", "document 6",
	} {
		require.ErrorContains(t, err, want)
	}
	require.NotContains(t, err.Error(), "document 2:")
	require.Equal(t, []string{"good"}, templateNames(documents))
}

// TestReadFilesBounded: a file may be a pipe, as that of a shell is, and is not read without an end.
func TestReadFilesBounded(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	_, err := ReadFiles(t.Context(), []string{pipe})
	require.NoError(t, err, "nobody writes to it")
	_, err = ReadFiles(t.Context(), []string{"/dev/zero"})
	require.EqualError(t, err, "read configuration: read /dev/zero: it has more than 67108864 bytes: too large")
}

func TestReadFiles(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	a, b := file("a.yaml", template("a")), file("b.yaml", template("b")+"---\n"+configured("c", ""))
	bad, worse := file("bad.yaml", "kind: Pod\n"), file("worse.yaml", "[")

	documents, err := ReadFiles(t.Context(), []string{a, b})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, templateNames(documents))
	require.Len(t, documents.configurations, 1)

	_, err = ReadFiles(t.Context(), []string{bad, a, filepath.Join(folder, "none.yaml"), worse})
	require.ErrorContains(t, err, bad+", document 1: apiVersion")
	require.ErrorContains(t, err, "read configuration: open "+filepath.Join(folder, "none.yaml"))
	require.ErrorContains(t, err, worse+", document 1: ")

	documents, err = ReadFiles(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, documents.templates)
}

// TestFileWithoutDocumentsWarns: it is mostly the wrong file, or one that was cut off.
func TestFileWithoutDocumentsWarns(t *testing.T) {
	t.Parallel()
	for text, warns := range map[string]bool{"": true, "# nothing\n---\n": true, template("a"): false, configured("c", ""): false} {
		path := filepath.Join(t.TempDir(), "a.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
		_, err := ReadFiles(klog.NewContext(t.Context(), logger), []string{path})
		require.NoError(t, err)
		logged := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
		require.Equal(t, warns, strings.Contains(logged, "A configuration file has no documents, so it configures nothing") && strings.Contains(logged, path), "%q: %s", text, logged)
	}
}

// TestUnreadableFileIsRefused: a restart beside a file that is no text retires nothing.
func TestUnreadableFileIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.yaml")
	require.NoError(t, os.WriteFile(path, []byte("a: \x00\n"), 0o600))
	_, err := ReadFiles(t.Context(), []string{path})
	require.ErrorContains(t, err, "the byte 0x00 at offset 3 is no text")
}

// TestDecodeList: what kubectl get -o yaml prints is configuration too.
func TestDecodeList(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"v1, kind: List", "dra.kwok.x-k8s.io/v1alpha1, kind: ResourcePoolTemplateList"} {
		one := `{apiVersion: dra.kwok.x-k8s.io/v1alpha1, kind: ResourcePoolTemplate, metadata: {name: %s}, spec: {driver: d.example.com, devices: [{name: gpu}]}}`
		documents, err := Decode("f", fmt.Appendf(nil, "{apiVersion: "+kind+", items: ["+one+", "+one+"]}", "a", "b"))
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b"}, templateNames(documents))
	}
}

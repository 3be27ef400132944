package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
		"dots in a text":        {template("a", "  poolName: a.b # ...\n"), []string{"a"}, 0},
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

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	const object = `file.yaml, document 1: ResourcePoolTemplate "a": `
	for name, test := range map[string]struct{ text, want string }{
		"unknown field":        {template("a", "  poolname: p\n"), object + `unknown field "spec.poolname"`},
		"field in wrong case":  {template("a", "  Driver: d\n"), object + `unknown field "spec.Driver"`},
		"unknown deep field":   {strings.Replace(template("a"), "{name: gpu}", "{name: gpu, cuont: 8}", 1), object + `unknown field "spec.devices[0].cuont"`},
		"unknown in metadata":  {strings.Replace(template("a"), "{name: a}", "{name: a, nmae: b}", 1), object + `unknown field "metadata.nmae"`},
		"unknown in selector":  {template("a", "  publishWhen: {matchLabel: {a: b}}\n"), object + `unknown field "spec.publishWhen.matchLabel"`},
		"duplicate key":        {template("a", "  driver: e\n"), `file.yaml, document 1: `},
		"duplicate key, text":  {template("a", "  driver: e\n"), `key "driver" already set in map`},
		"duplicate JSON key":   {`{"apiVersion": "dra.kwok.x-k8s.io/v1alpha1", "kind": "ResourcePoolTemplate", "kind": "ResourcePoolTemplate"}`, `already set in map`},
		"wrong type":           {strings.Replace(template("a"), "driver: d", "driver: [d]", 1), "cannot unmarshal array"},
		"count as text":        {strings.Replace(template("a"), "{name: gpu}", "{name: gpu, count: '8'}", 1), "cannot unmarshal string"},
		"fractional count":     {strings.Replace(template("a"), "{name: gpu}", "{name: gpu, count: 1.5}", 1), "cannot unmarshal number 1.5"},
		"invalid":              {strings.Replace(template("a"), "driver: d", "driver: D_", 1), object + `spec.driver: Invalid value: "D_"`},
		"bad template":         {template("a", "  poolName: '{{ x }}'\n"), object + `spec.poolName: Invalid value: "{{ x }}": is no valid template`},
		"bad selector":         {template("a", "  publishWhen: {matchExpressions: [{key: '[', operator: Exists}]}\n"), object + `spec.publishWhen.matchExpressions[0]: Invalid value: "["`},
		"wrong kind":           {header + "kind: Pod\n", `file.yaml, document 1: kind: unsupported value "Pod": must be ResourcePoolTemplate or KwokDRAConfiguration`},
		"no kind":              {header, `kind: unsupported value ""`},
		"kind in wrong case":   {header + "Kind: ResourcePoolTemplate\n", `kind: unsupported value ""`},
		"wrong apiVersion":     {"apiVersion: v1\nkind: Pod\n", `apiVersion: unsupported value "v1": must be "dra.kwok.x-k8s.io/v1alpha1"`},
		"empty object":         {"{}", `apiVersion: unsupported value ""`},
		"list":                 {"[]", "not an object with apiVersion and kind"},
		"text":                 {"hello", "not an object with apiVersion and kind"},
		"no YAML":              {"a: [", "file.yaml, document 1: "},
		"tab":                  {"a:\n\tb: c\n", "file.yaml, document 1: "},
		"second":               {template("a") + "---\nkind: Pod\n", "file.yaml, document 2: apiVersion"},
		"third, after comment": {template("a") + "---\n# none\n---\nkind: Pod\n", "file.yaml, document 3: apiVersion"},
		"second after an end":  {template("a") + "...\n# b\n" + template("b"), "file.yaml, document 1: there is text after the end of the document"},
		"configuration":        {configured("c", "publishwhen: {}"), `file.yaml, document 1: KwokDRAConfiguration "c": unknown field "spec.publishwhen"`},
		"configuration, jq":    {configured("c", "retireWhen: {matchExpressions: [{key: '[', operator: Exists}]}"), `spec.retireWhen.matchExpressions[0]`},
		"configuration, pod":   {configured("c", "failWhen: {matchExpressions: [{cel: {expression: self.status.capacity}}]}"), `spec.failWhen.matchExpressions[0]`},
		"pod status":           {configured("c", "podStatus: Full"), `spec.podStatus: Unsupported value: "Full": supported values: "Minimal", "Faithful"`},
		"retry interval":       {configured("c", "retryInterval: 0s"), `spec.retryInterval: Invalid value: "0s": must be more than 0`},
		"binding delay":        {configured("c", "bindingDelay: -1s"), `spec.bindingDelay: Invalid value: "-1s": must not be less than 0`},
		"claim status mode":    {template("a", "  claimStatus: {mode: Done}\n"), `spec.claimStatus.mode: Unsupported value: "Done"`},
		"claim data":           {template("a", "  claimStatus: {data: [1]}\n"), `spec.claimStatus.data: Invalid value: "[1]": must be an object, or a template that yields one`},
		"claim template":       {template("a", "  claimStatus: {data: {a: '{{ x }}'}}\n"), `spec.claimStatus.data[a]: Invalid value: "{{ x }}": is no valid template`},
		"claim IPs":            {template("a", "  claimStatus: {networkData: {ips: [10.0.0.1]}}\n"), `spec.claimStatus.networkData.ips[0]: Invalid value: "10.0.0.1"`},
		"health":               {template("a", "  health: Good\n"), `spec.health: Unsupported value: "Good"`},
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

	documents, err := ReadFiles([]string{a, b})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, templateNames(documents))
	require.Len(t, documents.configurations, 1)

	_, err = ReadFiles([]string{bad, a, filepath.Join(folder, "none.yaml"), worse})
	require.ErrorContains(t, err, bad+", document 1: apiVersion")
	require.ErrorContains(t, err, "read configuration: open "+filepath.Join(folder, "none.yaml"))
	require.ErrorContains(t, err, worse+", document 1: ")

	documents, err = ReadFiles(nil)
	require.NoError(t, err)
	require.Empty(t, documents.templates)
}

// FuzzDecode: no text makes decoding panic, and what is decoded makes a set.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(template("a") + "---\n" + configured("c", "publishWhen: {}")))
	f.Add([]byte("---\n...\n"))
	f.Add([]byte("{\"a\": 1}"))
	f.Add([]byte(fmt.Sprintf("%s  publishWhen: &x {matchLabels: {a: *x}}\n", template("a"))))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, costly := range []string{"count", "until", "repeat", "{{"} {
			if strings.Contains(string(data), costly) {
				return
			}
		}
		documents, err := Decode("f", data)
		if err == nil {
			require.NotNil(t, documents)
		}
	})
}

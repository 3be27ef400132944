package printing

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
)

// pod is an object of an answer.
type pod struct {
	Name    string   `json:"name"`
	Devices []string `json:"devices"`
}

func (p pod) ResourceName() string { return "pod/" + p.Name }

// printPods prints two Pods, or returns why the flags are wrong.
func printPods(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	flags, command := NewFlags(), &cobra.Command{Use: "pods", Run: func(*cobra.Command, []string) {}}
	flags.AddTo(command)
	command.SetArgs(arguments)
	require.NoError(t, command.Execute())
	if err := flags.Validate(); err != nil {
		return "", err
	}
	table := &output.Rows{Columns: []output.Column{{Name: "name"}, {Name: "devices", Wide: true}}}
	table.Add("train-0", "gpu-0,gpu-1")
	table.Add("train-1", "<none>")
	var out strings.Builder
	err := flags.Print(&out, output.Tables{table}, []any{pod{"train-0", []string{"gpu-0", "gpu-1"}}, pod{Name: "train-1"}})
	return out.String(), err
}

// TestPrint prints in each of kubectl's formats.
func TestPrint(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"table":         {nil, "NAME\ntrain-0\ntrain-1\n"},
		"no headers":    {[]string{"--no-headers"}, "train-0\ntrain-1\n"},
		"wide":          {[]string{"-o", "wide"}, "NAME      DEVICES\ntrain-0   gpu-0,gpu-1\ntrain-1   <none>\n"},
		"name":          {[]string{"-o", "name"}, "pod/train-0\npod/train-1\n"},
		"jsonpath":      {[]string{"-o", "jsonpath={.items[*].name}"}, "train-0 train-1"},
		"go-template":   {[]string{"-o", "go-template={{range .items}}{{.name}};{{end}}"}, "train-0;train-1;"},
		"template flag": {[]string{"--template", "{{len .items}}"}, "2"},
		"yaml": {[]string{"-o", "yaml"}, `apiVersion: v1
items:
- devices:
  - gpu-0
  - gpu-1
  name: train-0
- devices: null
  name: train-1
kind: List
`},
		"custom columns": {
			[]string{"-o", "custom-columns=POD:.name,FIRST:{.devices[0]},ALL:devices[*],NONE:.none"},
			"POD       FIRST    ALL           NONE\ntrain-0   gpu-0    gpu-0,gpu-1   <none>\ntrain-1   <none>   <none>        <none>\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := printPods(t, test.arguments...)
			require.NoError(t, err)
			require.Equal(t, test.want, text)
		})
	}
	text, err := printPods(t, "-o", "json")
	require.NoError(t, err)
	require.JSONEq(t, `{"apiVersion": "v1", "kind": "List", "items": [{"name": "train-0", "devices": ["gpu-0", "gpu-1"]}, {"name": "train-1", "devices": null}]}`, text)
}

// TestValidate refuses formats that do not exist.
func TestValidate(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{
		"xml":                  "parse -o xml: it is one of",
		"custom-columns":       "columns are missing",
		"custom-columns=NAME":  `"NAME" is not HEADER:PATH`,
		"custom-columns=A:.[x": `path ".[x"`,
		"jsonpath":             "template",
	} {
		_, err := printPods(t, "-o", format)
		require.ErrorContains(t, err, want)
	}
}

func TestDescribeUnseen(t *testing.T) {
	t.Parallel()
	var told strings.Builder
	Unseen(&told, []reading.Unseen{{Verb: "list", Resource: "pods", Namespace: "team", IsForbidden: true}, {Verb: "list", Resource: "deviceclasses"}, {Verb: "list", Resource: "resourceslices"}})
	require.Equal(t, "cannot list pods in namespace team: ask for the ClusterRole dra-viewer, or for the right to list them\n"+
		"the API server does not serve resource.k8s.io/v1: use Kubernetes 1.34 or later, and do not switch the API off\n", told.String())
}

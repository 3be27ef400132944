package dractl

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
)

// commands are all that a user can run, but for those that cobra adds.
func commands(command *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{command}
	for _, child := range command.Commands() {
		all = append(all, commands(child)...)
	}
	return all
}

// TestHelp: every command says what it does, and has examples whose flags there
// are. The examples are run on a real cluster elsewhere.
func TestHelp(t *testing.T) {
	t.Parallel()
	root := New(cli.Streams{})
	require.Greater(t, len(commands(root)), 6)
	for _, command := range commands(root) {
		require.NotEmpty(t, command.Short, command.Name())
		require.NotEmpty(t, command.Example, command.Name())
		require.NotNil(t, command.Args, command.Name())
		for line := range strings.Lines(command.Example) {
			require.True(t, strings.TrimSpace(line) == "" || strings.HasPrefix(line, "  "), "%q", line)
			_, call, ok := strings.Cut(line, cli.Name+" ")
			if !ok || strings.HasPrefix(strings.TrimSpace(line), "#") {
				continue
			}
			call, _, _ = strings.Cut(call, "|")
			call, _, _ = strings.Cut(call, ">")
			if strings.Fields(call)[0] == "completion" {
				continue
			}
			found, arguments, err := New(cli.Streams{}).Find(strings.Fields(call))
			require.NoError(t, err, line)
			require.Equal(t, command.CommandPath(), found.CommandPath(), line)
			if err := found.ParseFlags(arguments); err != nil {
				require.ErrorContains(t, err, "help requested", line)
			}
		}
	}
}

// run runs a command line, and returns what it prints and its exit code.
func run(t *testing.T, in string, arguments ...string) (out, errOut string, code int) {
	t.Helper()
	var printed, told bytes.Buffer
	command := New(cli.Streams{In: strings.NewReader(in), Out: &printed, ErrOut: &told})
	command.SetArgs(arguments)
	err := command.ExecuteContext(t.Context())
	if err != nil {
		told.WriteString(err.Error())
	}
	return printed.String(), told.String(), cli.ExitCode(err)
}

const examples = "testdata/examples/"

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		arguments []string
		code      int
		told      string
	}{
		"valid":                     {[]string{"validate", "-f", examples + "templates.yaml"}, 0, "2 valid"},
		"directory":                 {[]string{"validate", "-f", examples + "profile"}, 0, "1 valid"},
		"invalid":                   {[]string{"validate", "-f", examples + "invalid.yaml"}, 1, ""},
		"nothing":                   {[]string{"validate"}, 2, "give -f FILE"},
		"no such file":              {[]string{"validate", "-f", "none.yaml"}, 2, "none.yaml"},
		"URL":                       {[]string{"validate", "-f", "https://example.com/a.yaml"}, 2, "URLs are not supported"},
		"empty directory":           {[]string{"validate", "-f", "."}, 2, "use -R to read the directories below it"},
		"nothing of ours":           {[]string{"validate", "-f", examples + "nodes.yaml"}, 2, "nothing here is for kwok-dra"},
		"unknown flag":              {[]string{"validate", "--file", "a"}, 2, "unknown flag"},
		"argument":                  {[]string{"validate", "gpus.yaml"}, 2, `unexpected argument "gpus.yaml": use -f gpus.yaml`},
		"no number":                 {[]string{"generate", "--profile", "nvidia-h100", "--nodes", "abc"}, 2, `parse --nodes "abc": must be a whole number`},
		"part of a profile":         {[]string{"generate", "--profile", "h100"}, 2, "did you mean nvidia-h100?"},
		"unknown subcommand":        {[]string{"status", "nodes"}, 2, "did you mean status node?"},
		"unknown command":           {[]string{"valdate"}, 2, "did you mean validate?"},
		"unknown format":            {[]string{"validate", "-o", "xml"}, 2, "must be table, json, yaml or name"},
		"render":                    {[]string{"render", "-f", examples + "templates.yaml", "-f", examples + "nodes.yaml"}, 0, ""},
		"render what is invalid":    {[]string{"render", "-f", examples + "invalid.yaml", "-f", examples + "nodes.yaml"}, 1, "invalid.yaml:10: "},
		"render no nodes":           {[]string{"render", "-f", examples + "templates.yaml"}, 2, "give --nodes COUNT, Nodes with -f, or --from-cluster"},
		"render nodes to make":      {[]string{"render", "-f", examples + "templates.yaml", "--nodes", "example-h100=2"}, 0, ""},
		"render --nodes of files":   {[]string{"render", "-f", examples + "templates.yaml", "--nodes", examples + "nodes.yaml"}, 2, "must be a number of nodes to make, or TEMPLATE=NUMBER; give files of nodes with -f"},
		"record --nodes of labels":  {[]string{"record", "--node", "a", "--nodes", "type=recorded"}, 2, `parse --nodes "type=recorded": it is a number of nodes elsewhere: give the labels as --node-selector`},
		"render no templates":       {[]string{"render", "--nodes", "1"}, 2, "give -f FILE"},
		"render for none":           {[]string{"render", "-f", examples + "templates.yaml", "-f", examples + "nodes.yaml", "--manage-nodes-with-label-selector", "a=b"}, 2, "of 3 nodes none is fake"},
		"render for the old":        {[]string{"render", "-f", examples + "templates.yaml", "-f", examples + "nodes.yaml", "--server-version", "1.30"}, 2, "must be 1.34 to 1.37"},
		"render an unknown gate":    {[]string{"render", "-f", examples + "templates.yaml", "-f", examples + "nodes.yaml", "--feature-gates", "A=true"}, 2, "must be one that devices depend on"},
		"diff without a cluster":    {[]string{"diff", "-f", examples + "templates.yaml", "--kubeconfig", "none"}, 2, "find the API server"},
		"no kubeconfig":             {[]string{"status", "--kubeconfig", examples + "nothing.yaml"}, 2, "nothing.yaml has no cluster: set KUBECONFIG or give --kubeconfig FILE"},
		"render an empty file":      {[]string{"render", "-f", examples + "nothing.yaml", "-f", examples + "nodes.yaml"}, 2, "there is no ResourcePoolTemplate in " + examples + "nothing.yaml"},
		"profile as an argument":    {[]string{"generate", "nvidia-h100"}, 0, ""},
		"fewer than no nodes":       {[]string{"generate", "--profile", "nvidia-h100", "--nodes", "-3"}, 2, "parse --nodes -3: must not be negative"},
		"no prefix of nodes":        {[]string{"generate", "--profile", "nvidia-h100", "--nodes", "1", "--prefix", "Foo_Bar"}, 2, `parse --prefix "Foo_Bar": must begin the names of nodes`},
		"driver of a profile":       {[]string{"generate", "--profile", "nvidia-h100", "--driver", "gpu.nvidia.com"}, 2, "give it with --from-cluster or -f, not with a target"},
		"no such template":          {[]string{"schedule", "-f", examples + "templates.yaml", "--nodes", "h100=2", "-f", examples + "pods.yaml"}, 2, "did you mean example-h100?"},
		"check no driver":           {[]string{"check-driver"}, 2, "COMMAND is missing: kwok-dractl check-driver [flags] -- COMMAND [ARG...]"},
		"check what is not there":   {[]string{"check-driver", "--", "./none"}, 2, "find COMMAND"},
		"check a nameless driver":   {[]string{"check-driver", "--", "true", "{driver}"}, 2, "give --driver NAME"},
		"check in two clusters":     {[]string{"check-driver", "--control-plane", "bin", "--context", "a", "--", "true"}, 2, "exclude each other: give one of them"},
		"check without time":        {[]string{"check-driver", "--timeout", "0s", "--", "true"}, 2, "parse --timeout 0s: must be positive"},
		"check an empty cluster":    {[]string{"check-driver", "--control-plane", examples, "--", "true"}, 2, "give a directory that has etcd and kube-apiserver"},
		"unknown statement":         {[]string{"check-driver", "--only", "^none$", "--", "true"}, 2, `parse --only "^none$": matches none of registers, publishes`},
		"check a nameless argument": {[]string{"check-scheduler", "my-scheduler"}, 2, `unexpected argument "my-scheduler": write -- before COMMAND`},
		"check no such scheduler":   {[]string{"check-scheduler", "--", "./none"}, 2, "find COMMAND"},
		"check no stories":          {[]string{"check-scheduler", "--seeds", "0"}, 2, "parse --seeds 0: must be positive"},
		"check in no time":          {[]string{"check-scheduler", "--timeout", "0s"}, 2, "parse --timeout 0s: must be positive"},
		"check stories twice":       {[]string{"check-scheduler", "--control-plane", "bin", "--context", "a"}, 2, "exclude each other: give one of them"},
		"check no programs":         {[]string{"check-scheduler", "--control-plane", examples}, 2, "give a directory that has etcd and kube-apiserver"},
		"unknown rule":              {[]string{"check-scheduler", "--only", "^none$"}, 2, `parse --only "^none$": matches none of device-once, `},
		"list statements":           {[]string{"check-scheduler", "--statements", "--only", "^pod"}, 0, ""},
		"check without groups":      {[]string{"check-autoscaler"}, 2, "give the groups of nodes with -f FILE"},
		"check impatiently":         {[]string{"check-autoscaler", "-f", examples + "nodes.yaml", "--timeout", "1m"}, 2, "parse --timeout 1m0s: must be longer than --settle 2m0s"},
		"check no such autoscaler":  {[]string{"check-autoscaler", "-f", examples + "nodes.yaml", "--", "./none"}, 2, "find COMMAND"},
		"list other statements":     {[]string{"check-autoscaler", "--statements"}, 0, ""},
		"a Pod of all namespaces":   {[]string{"why", "p", "-A"}, 2, "-A lists the Pods of all namespaces: give a POD, with its namespace as -n, or -A"},
		"two Pods":                  {[]string{"why", "p", "q"}, 2, `unexpected argument "q": give one POD`},
		"no such profile":           {[]string{"generate", "--profile", "nvidia-h10"}, 2, "did you mean nvidia-h100?"},
		"generate nothing":          {[]string{"generate"}, 2, "give a TARGET, --from-cluster or -f FILE"},
		"profile and copy":          {[]string{"generate", "--profile", "nvidia-h100", "--from-cluster"}, 2, "--profile and --from-cluster exclude each other: give one of them"},
		"target and copy":           {[]string{"generate", "nvidia-h100", "--from-cluster"}, 2, "a target (nvidia-h100) excludes --from-cluster and -f"},
		"a table of nodes":          {[]string{"generate", "nvidia-h100", "-o", "wide"}, 2, "-o wide is for --list-profiles"},
		"one target of two":         {[]string{"generate", "amd-mi300x,rdma-nix"}, 2, "did you mean rdma-nic?"},
		"nodes of a copy":           {[]string{"generate", "-f", examples + "nodes.yaml", "--nodes", "3"}, 2, "--nodes is for a TARGET, or a file of templates"},
		"scale nothing":             {[]string{"scale", "--nodes", "3"}, 2, "TARGET is missing"},
		"scale to no number":        {[]string{"scale", "nvidia-h100"}, 2, "--nodes is missing"},
		"scale below nothing":       {[]string{"scale", "nvidia-h100", "--nodes", "-1"}, 2, "parse --nodes -1: must not be negative"},
		"scale two targets":         {[]string{"scale", "nvidia-h100", "rdma-nic", "--nodes", "1"}, 2, "join targets of one node by commas: nvidia-h100,rdma-nic"},
		"delete nothing":            {[]string{"delete"}, 2, "TARGET is missing"},
		"delete one and all":        {[]string{"delete", "nvidia-h100", "--all"}, 2, "--all deletes all fleets: give it or nvidia-h100"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, told, code := run(t, "", test.arguments...)
			require.Equal(t, test.code, code, told)
			require.Contains(t, told, test.told)
		})
	}
}

// TestWrongObjects names the field of an object that cannot be read, or that asks
// for nothing.
func TestWrongObjects(t *testing.T) {
	t.Parallel()
	const claim = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: two}\nspec: {devices: {requests: [{name: gpu, %s}]}}\n"
	for text, want := range map[string]string{
		"apiVersion: v1\nkind: Node\nmetadata: {name: n}\n":                                        `<stdin>:1: Node "": metadata.name: must be a string, not a bool: put it in quotes`,
		"apiVersion: v1\nkind: Node\nmetadata: {name: a}\nspec: {taints: {}}\n":                    `<stdin>:1: Node "a": spec.taints: must be of type []v1.Taint, not object`,
		fmt.Sprintf(claim, "exatly: {deviceClassName: a}"):                                         `<stdin>:1: ResourceClaim "two": spec.devices.requests[0]: must have exactly or firstAvailable, and has exatly`,
		fmt.Sprintf(claim, "count: 2, deviceClassName: a"):                                         `spec.devices.requests[0]: must have exactly or firstAvailable, and has count, deviceClassName`,
		strings.Replace(fmt.Sprintf(claim, "exactly: {deviceClassName: a}"), "/v1", "/v1beta1", 1): `spec.devices.requests[0]: must have deviceClassName or firstAvailable, and has exactly`,
		fmt.Sprintf(claim, ""): `spec.devices.requests[0]: must have exactly or firstAvailable, and has neither`,
		strings.NewReplacer("ResourceClaim", "ResourceClaimTemplate", "{devices", "{spec: {devices", "}]}}", "}]}}}").Replace(fmt.Sprintf(claim, "")): `ResourceClaimTemplate "two": spec.spec.devices.requests[0]: must have exactly`,
	} {
		_, told, code := run(t, text, "schedule", "-f", "-", "-f", examples+"pods.yaml", "-f", examples+"templates.yaml")
		require.Equal(t, cli.ExitFailed, code, told)
		require.Contains(t, told, want)
	}
}

// TestUnselected says by what a template misses, on standard error.
func TestUnselected(t *testing.T) {
	t.Parallel()
	nodes := "{apiVersion: v1, kind: Node, metadata: {name: node-0, labels: {example: h10}, annotations: {kwok.x-k8s.io/node: fake}}}"
	out, told, code := run(t, nodes, "render", "-f", examples+"templates.yaml", "-f", "-")
	require.Zero(t, code)
	require.Empty(t, out)
	require.Equal(t, "template example-h100 selects 0 of 1 nodes: example is h10, must be h100 (node node-0)\n"+
		"template example-mig selects 0 of 1 nodes: example is h10, must be mig (node node-0)\n", told)
	_, told, _ = run(t, nodes, "schedule", "-f", examples+"templates.yaml", "-f", examples+"classes.yaml", "-f", examples+"pods.yaml", "-f", "-")
	require.Contains(t, told, "template example-h100 selects 0 of 1 nodes: example is h10")
}

// TestSkipped counts objects of other kinds in one line, the last.
func TestSkipped(t *testing.T) {
	t.Parallel()
	_, told, code := run(t, "", "validate", "-f", examples)
	require.Equal(t, cli.ExitNegative, code)
	require.Equal(t, 1, strings.Count(told, "skipped"), told)
	require.Contains(t, told, "skipped what kwok-dra does not read: 2 DeviceClass, 4 Node, 2 Pod, 2 ResourceClaimTemplate, 1 ResourceSlice\n")
	out, _, _ := run(t, "", "validate", "-f", examples, "-o", "json")
	require.Contains(t, out, `"DeviceClass": 2`)
}

// TestFormats: what is printed in every format can be read again.
func TestFormats(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{
		"yaml": "kind: ResourceSlice\n", "json": `"kind": "ResourceSlice"`, "name": "resourceslice.resource.k8s.io/00000-gpu.nvidia.com-h100-0-",
		"table": "NAME  ", "wide": "COUNTERS\n",
	} {
		out, told, code := run(t, "", "render", "-f", examples+"templates.yaml", "-f", examples+"nodes.yaml", "-o", format)
		require.Zero(t, code, told)
		require.Contains(t, out, want, format)
	}
	out, _, code := run(t, "", "validate", "-f", examples+"invalid.yaml", "-o", "json")
	require.Equal(t, cli.ExitNegative, code)
	require.Contains(t, out, `"line": 10`)
}

// TestGenerated: what is generated is valid, and nodes have its devices, unless a driver's
// Pod gives them, by way of a ConfigMap too.
func TestGenerated(t *testing.T) {
	t.Parallel()
	list, _, _ := run(t, "", "generate", "--list-profiles", "-o", "name")
	for profile := range strings.FieldsSeq(list) {
		for _, more := range [][]string{nil, {"--config-map", "kube-system/kwok-dra"}} {
			out, told, code := run(t, "", append([]string{"generate", "--profile", profile, "--nodes", "2", "--first", "7", "--prefix", "node"}, more...)...)
			require.Zero(t, code, told)
			require.Contains(t, out, "  name: node-8\n")
			_, told, code = run(t, out, "validate", "-f", "-")
			require.Zero(t, code, told)
			file := filepath.Join(t.TempDir(), "generated.yaml")
			require.NoError(t, os.WriteFile(file, []byte(out), 0o600))
			names, told, code := run(t, "", "render", "-f", file, "-o", "name")
			require.Zero(t, code, told)
			want := 2
			if strings.Contains(out, "driverPod:") {
				want = 0
			}
			require.GreaterOrEqual(t, strings.Count(names, "node-"), want, profile)
		}
	}
}

package documents

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
)

func TestSplit(t *testing.T) {
	t.Parallel()
	all := Split("f", []byte("# only a comment\n---\na: 1\n--- # another\n\nb: 2\n---\n---\n{c: 3}"))
	var got []string
	for _, document := range all {
		got = append(got, document.Where()+" "+strings.TrimSpace(string(document.Data)))
	}
	require.Equal(t, []string{"f:3 a: 1", "f:5 b: 2", "f:9 {c: 3}"}, got)
	require.Empty(t, Split("f", nil))
	require.Len(t, Split("f", []byte("a: |\n  --- is no separator\n---- neither\n")), 1)
}

func TestObjects(t *testing.T) {
	t.Parallel()
	objects, err := Objects(Split("f", []byte(`apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: a}}
- {apiVersion: v1, kind: Node, metadata: {name: b}}
---
apiVersion: v1
kind: Node
metadata: {name: c}
---
kind: Node
`)))
	require.ErrorContains(t, err, "f:11: not an object with apiVersion and kind")
	require.Len(t, objects, 3)
	require.Equal(t, "f:7", objects[2].Where)
	node := &corev1.Node{}
	require.NoError(t, objects[1].Into(node))
	require.Equal(t, "b", node.Name)
	objects[2].Object["spec"] = "text"
	require.ErrorContains(t, objects[2].Into(node), `f:7: Node "c": `)
}

// TestObjectsOfEveryForm: no object is passed over, and an error has its line.
func TestObjectsOfEveryForm(t *testing.T) {
	t.Parallel()
	const a, b = `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}`, `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "b"}}`
	const bare = `{"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]}`
	for _, text := range []string{
		a + b, a + "\n" + b, "\uFEFF" + a + "\r\n---\r\n" + b, "--- " + a + "\n--- " + b, bare,
		`{"apiVersion": "v1", "kind": "List", "items": [` + bare + `]}`,
	} {
		objects, err := Objects(Split("f", []byte(text)))
		require.NoError(t, err, text)
		require.Len(t, objects, 2, text)
		require.Equal(t, "a b Node", objects[0].GetName()+" "+objects[1].GetName()+" "+objects[1].GetKind(), text)
	}
	for text, want := range map[string]string{
		"---\n" + a + "\n{":       "f:3: no valid YAML: ",
		"{kind: A}\n{kind: B}\n":  "f:1: there is text after the end of the document",
		"# none\n---\na: 1\nb: [": "f:4: no valid YAML: ",
		"[" + a + "]":             "f:1: not an object with apiVersion and kind: [{",
	} {
		_, err := Objects(Split("f", []byte(text)))
		require.ErrorContains(t, err, want)
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	const object = "{apiVersion: v1, kind: Node}"
	dir := t.TempDir()
	for name, text := range map[string]string{"b.yaml": object, "a.yml": object, "c.json": object, "d.txt": object, "inner/e.yaml": object} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	read := func(files Files) []string {
		all, err := files.Read(cli.Streams{In: strings.NewReader("f: 1"), ErrOut: io.Discard})
		require.NoError(t, err)
		var names []string
		for _, document := range all {
			names = append(names, filepath.Base(document.File))
		}
		return names
	}
	require.Equal(t, []string{"a.yml", "b.yaml", "c.json"}, read(Files{Paths: []string{dir}}))
	require.Equal(t, []string{"a.yml", "b.yaml", "c.json", "e.yaml", "<stdin>"}, read(Files{Paths: []string{dir, "-"}, Recursive: true}))
	require.Equal(t, []string{"d.txt"}, read(Files{Paths: []string{filepath.Join(dir, "d.txt")}}))

	_, err := (&Files{Paths: []string{"https://example.com/a.yaml", filepath.Join(dir, "none"), filepath.Join(dir, "b.yaml")}}).Read(cli.Streams{})
	require.ErrorContains(t, err, "URLs are not supported")
	require.ErrorContains(t, err, "none")
}

// TestFilesOfOthers: who reads a directory of others waits for nobody, and is told which file is none.
func TestFilesOfOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "target"), []byte("a: 1"), 0o600))
	require.NoError(t, os.Symlink("target", filepath.Join(dir, "a.yaml")), "as in a mounted ConfigMap")
	require.NoError(t, os.Symlink("/dev/zero", filepath.Join(dir, "zero.yaml")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "fifo.yaml"), 0o600))
	all, err := (&Files{Paths: []string{dir}}).Read(cli.Streams{})
	require.ErrorContains(t, err, "fifo.yaml: it is a FIFO, and must be a regular file")
	require.ErrorContains(t, err, "zero.yaml: it is a device, and must be a regular file")
	require.Len(t, all, 1)
	all, err = (&Files{Paths: []string{filepath.Join(dir, "fifo.yaml")}}).Read(cli.Streams{})
	require.NoError(t, err, "a user may name a pipe")
	require.Empty(t, all)
}

// TestRecursiveSkipsWhatIsForeign: a repository has more files than those for
// kwok-dra, and a mistake in one of those stays a mistake.
func TestRecursiveSkipsWhatIsForeign(t *testing.T) {
	t.Parallel()
	const ours = "apiVersion: dra.kwok.x-k8s.io/v1alpha1\nkind: ResourcePoolTemplate\n"
	dir := t.TempDir()
	for name, text := range map[string]string{
		"template.yaml": ours, "broken.yaml": ours + "spec: {{ .Values.spec }}\n", "node.yaml": "{apiVersion: v1, kind: Node}\n---\nonly: text\n",
		"chart/values.yaml": "image: x\n", "chart/templates/deployment.yaml": "apiVersion: apps/v1\nkind: Deployment\nspec: {{ .Values.spec }}\n",
		"package.json": "{}", "patch.json": "[]", "kindless.yaml": "kind: ResourcePoolTemplate\n", "slice.json": `{"apiVersion": "resource.k8s.io/v1", `,
		"spaced.json": `{"kind" : "ResourcePoolTemplate", `,
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	var told bytes.Buffer
	files := Files{Paths: []string{dir}, Recursive: true}
	all, err := files.Read(cli.Streams{ErrOut: &told})
	require.NoError(t, err)
	var names []string
	for _, document := range all {
		names = append(names, filepath.Base(document.File))
	}
	require.Equal(t, []string{"broken.yaml", "kindless.yaml", "node.yaml", "slice.json", "spaced.json", "template.yaml"}, names)
	require.Equal(t, "skipped what is not for Kubernetes: 5 documents in DIR/chart/templates/deployment.yaml, DIR/chart/values.yaml, DIR/node.yaml and 2 more\n",
		strings.ReplaceAll(told.String(), dir, "DIR"))

	values := filepath.Join(dir, "chart", "values.yaml")
	all, err = (&Files{Paths: []string{values}, Recursive: true}).Read(cli.Streams{})
	require.NoError(t, err)
	require.Len(t, all, 1, "a file that is named is meant")
	empty := filepath.Join(dir, "empty")
	require.NoError(t, os.Mkdir(empty, 0o700))
	_, err = (&Files{Paths: []string{empty}, Recursive: true}).Read(cli.Streams{})
	require.EqualError(t, err, "read "+empty+": the directory has no file named *.yaml, *.yml or *.json, nor has any below it")
}

// TestOlderVersions: what clusters of Kubernetes 1.32 and 1.33 print is read as v1.
func TestOlderVersions(t *testing.T) {
	t.Parallel()
	into := func(text string, typed any) ([]string, error) {
		objects, err := Objects(Split("f", []byte(text)))
		require.NoError(t, err)
		return objects[0].Convert(typed)
	}
	for version, device := range map[string]string{
		"v1beta1": "{name: gpu-0, basic: {attributes: {model: {string: A}}, capacity: {memory: {value: 1Gi}}, taints: [{key: a, effect: NoSchedule}]}}",
		"v1beta2": "{name: gpu-0, attributes: {model: {string: A}}, capacity: {memory: {value: 1Gi}}, taints: [{key: a, effect: NoSchedule}]}",
		"v1":      "{name: gpu-0, attributes: {model: {string: A}}, capacity: {memory: {value: 1Gi}}, taints: [{key: a, effect: NoSchedule}]}",
	} {
		slice := &resourcev1.ResourceSlice{}
		unknown, err := into("apiVersion: resource.k8s.io/"+version+"\nkind: ResourceSlice\nmetadata: {name: s}\nspec: {driver: d, nodeName: node-0, devices: ["+device+"]}", slice)
		require.NoError(t, err, version)
		require.Empty(t, unknown)
		require.Equal(t, resourcev1.SchemeGroupVersion.String(), slice.APIVersion)
		require.Equal(t, "ResourceSlice", slice.Kind)
		require.Equal(t, "node-0", *slice.Spec.NodeName)
		require.Equal(t, "A", *slice.Spec.Devices[0].Attributes["model"].StringValue, version)
		memory := slice.Spec.Devices[0].Capacity["memory"]
		require.Equal(t, "1Gi", memory.Value.String())
		require.Equal(t, "a", slice.Spec.Devices[0].Taints[0].Key)
	}
	claim := &resourcev1.ResourceClaim{}
	_, err := into("apiVersion: resource.k8s.io/v1beta1\nkind: ResourceClaim\nspec: {devices: {requests: [{name: a, deviceClassName: c, count: 2}]}}", claim)
	require.NoError(t, err)
	require.EqualValues(t, 2, claim.Spec.Devices.Requests[0].Exactly.Count)
	template := &resourcev1.ResourceClaimTemplate{}
	_, err = into("apiVersion: resource.k8s.io/v1beta1\nkind: ResourceClaimTemplate\nspec: {spec: {devices: {requests: [{name: a, firstAvailable: [{name: b, deviceClassName: c}]}]}}}", template)
	require.NoError(t, err)
	require.Equal(t, "c", template.Spec.Spec.Devices.Requests[0].FirstAvailable[0].DeviceClassName)
	class := &resourcev1.DeviceClass{}
	_, err = into("apiVersion: resource.k8s.io/v1beta2\nkind: DeviceClass\nspec: {extendedResourceName: a/b}", class)
	require.NoError(t, err)
	require.Equal(t, "a/b", *class.Spec.ExtendedResourceName)
	rule := &resourcev1.DeviceTaintRule{}
	unknown, err := into("apiVersion: resource.k8s.io/v1alpha3\nkind: DeviceTaintRule\nspec: {deviceSelector: {driver: d, deviceClassName: c}, taint: {key: k, effect: NoExecute}}", rule)
	require.NoError(t, err)
	require.Equal(t, "d", *rule.Spec.DeviceSelector.Driver)
	require.Equal(t, []string{"spec.deviceSelector.deviceClassName"}, unknown)

	_, err = into("apiVersion: resource.k8s.io/v1alpha3\nkind: ResourceSlice\nmetadata: {name: s}", &resourcev1.ResourceSlice{})
	require.EqualError(t, err, `f:1: ResourceSlice "s": apiVersion: resource.k8s.io/v1alpha3 is not read: write it as resource.k8s.io/v1`)
	_, err = into("apiVersion: resource.k8s.io/v1beta1\nkind: ResourceSlice\nmetadata: {name: s}\nspec: {devices: [{name: 1}]}", &resourcev1.ResourceSlice{})
	require.ErrorContains(t, err, `f:1: ResourceSlice "s": spec.devices.name: must be a string, not a number: put it in quotes`)
	unknown, err = into("apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nspec: {devices: [{name: a, basic: {}}, {name: b, basic: {}}], flavour: x}", &resourcev1.ResourceSlice{})
	require.NoError(t, err)
	require.Equal(t, []string{"spec.devices[].basic", "spec.flavour"}, unknown)
}

// TestRemovedFields: a Pod of an old tutorial would be one without claims.
func TestRemovedFields(t *testing.T) {
	t.Parallel()
	const claims = "resourceClaims: [{name: a, resourceClaimName: b}, {name: c, source: {resourceClaimTemplateName: d}}]"
	for text, want := range map[string]string{
		"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {" + claims + "}":                                `f:1: Pod "p": spec.resourceClaims[1].source: `,
		"apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d}\nspec: {template: {spec: {" + claims + "}}}": `f:1: DaemonSet "d": spec.template.spec.resourceClaims[1].source: `,
	} {
		objects, err := Objects(Split("f", []byte(text)))
		require.NoError(t, err)
		require.EqualError(t, objects[0].Into(&corev1.Pod{}), want+
			"Kubernetes 1.31 removed this field: write resourceClaimName or resourceClaimTemplateName in its place, beside name")
	}
}

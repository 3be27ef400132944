package documents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
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
	dir := t.TempDir()
	for name, text := range map[string]string{"b.yaml": "b: 1", "a.yml": "a: 1", "c.json": "{}", "d.txt": "d: 1", "inner/e.yaml": "e: 1"} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	read := func(files Files) []string {
		all, err := files.Read(strings.NewReader("f: 1"))
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

	_, err := (&Files{Paths: []string{"https://example.com/a.yaml", filepath.Join(dir, "none"), filepath.Join(dir, "b.yaml")}}).Read(nil)
	require.ErrorContains(t, err, "URLs are not supported")
	require.ErrorContains(t, err, "none")
}

package cdi

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// readAlone reads the specs in a folder from which no link may lead out.
func readAlone(folder string) (Specs, error) { return Read(folder, folder) }

// folderOf is a folder with files.
func folderOf(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	return folder
}

func TestInjections(t *testing.T) {
	t.Parallel()
	specs, err := readAlone(folderOf(t, map[string]string{
		"a.json": `{"cdiVersion": "0.6.0", "kind": "a.com/gpu", "containerEdits": {"env": ["ALL=1"], "hooks": [{"hookName": "prestart", "path": "/x"}]},
  "devices": [{"name": "0", "containerEdits": {"env": ["GPU=0"], "deviceNodes": [{"path": "/dev/gpu0", "major": 195, "minor": 0, "fileMode": 438, "uid": 0}]}}, {"name": "1", "containerEdits": {"env": ["GPU=1"]}}]}`,
		"d.yaml":    "cdiVersion: 0.6.0\nkind: a/d\ndevices: [{name: e, containerEdits: {mounts: [{hostPath: /a, containerPath: /b, options: [ro]}]}}]\n",
		"notes.txt": "none",
	}))
	require.NoError(t, err)
	injections, err := specs.Injections([]string{"a.com/gpu=1", "a.com/gpu=0", "a/d=e"})
	require.NoError(t, err)
	all := containerview.Injection{ID: "CDI spec a.json", Edits: v1alpha1.Edits{Env: []string{"ALL=1"}}}
	node := v1alpha1.DeviceNode{Path: "/dev/gpu0", Major: new(intstr.FromInt32(195)), Minor: new(intstr.FromInt32(0)), FileMode: new(int64(438)), UID: new(int64(0))}
	require.Equal(t, []containerview.Injection{
		all,
		{ID: "CDI device a.com/gpu=1", Edits: v1alpha1.Edits{Env: []string{"GPU=1"}}},
		all,
		{ID: "CDI device a.com/gpu=0", Edits: v1alpha1.Edits{Env: []string{"GPU=0"}, DeviceNodes: []v1alpha1.DeviceNode{node}}},
		{ID: "CDI spec d.yaml"},
		{ID: "CDI device a/d=e", Edits: v1alpha1.Edits{Mounts: []v1alpha1.Mount{{HostPath: "/a", ContainerPath: "/b", Options: []string{"ro"}}}}},
	}, injections)

	_, err = specs.Injections([]string{"a/d=e", "a/d=f"})
	require.EqualError(t, err, "no spec of 2 in the folder of CDI specs has device a/d=f")
	require.NoError(t, specs.Check([]string{"a/d=e", "a.com/gpu=0"}))
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"kind: a/f": "CDI spec f.yaml has no cdiVersion, or is no YAML",
		"{":         "CDI spec f.yaml has no cdiVersion, or is no YAML",
	} {
		_, err := readAlone(folderOf(t, map[string]string{"f.yaml": content}))
		require.EqualError(t, err, want)
	}
	_, err := readAlone(filepath.Join(t.TempDir(), "none"))
	require.ErrorContains(t, err, "list CDI specs: ")

	specs, err := readAlone(folderOf(t, map[string]string{"f.yaml": "{cdiVersion: 0.6.0, kind: a/b, devices: [{name: c, containerEdits: {env: 1}}]}"}))
	require.NoError(t, err)
	_, err = specs.Injections([]string{"a/b=c"})
	require.ErrorContains(t, err, "read containerEdits of CDI device a/b=c: ")
}

// TestReadOthers: what is no spec costs its own devices only: the drivers of a node share the folder.
func TestReadOthers(t *testing.T) {
	t.Parallel()
	const spec = "{cdiVersion: 0.6.0, kind: a/b, devices: [{name: c}]}"
	for want, put := range map[string]func(folder string) error{
		"a.json: it is a FIFO":                     func(folder string) error { return syscall.Mkfifo(filepath.Join(folder, "a.json"), 0o600) },
		"a.json: it is a directory":                func(folder string) error { return os.Mkdir(filepath.Join(folder, "a.json"), 0o755) },
		"a.json: it is a symbolic link out of":     func(folder string) error { return os.Symlink("/dev/zero", filepath.Join(folder, "a.json")) },
		"a.json: it is a symbolic link to nothing": func(folder string) error { return os.Symlink("none", filepath.Join(folder, "a.json")) },
		"a.json: it has more than 1048576 bytes":   func(folder string) error { return write(folder, "a.json", make([]byte, mostInFile+1)) },
		"a.json has no cdiVersion, or is no YAML":  func(folder string) error { return write(folder, "a.json", []byte("[")) },
		"a.yaml has no cdiVersion, or is no YAML":  func(folder string) error { return write(folder, "a.yaml", nil) },
		"link out of /":                            func(folder string) error { return os.Symlink("../a.json", filepath.Join(folder, "a.json")) },
	} {
		root := folderOf(t, map[string]string{"a.json": spec})
		folder := filepath.Join(root, "cdi")
		require.NoError(t, os.Mkdir(folder, 0o755))
		require.NoError(t, put(folder))
		require.NoError(t, write(folder, "b.yaml", []byte(spec)))
		specs, err := readAlone(folder)
		require.ErrorContains(t, err, want)
		require.Len(t, specs, 1, want)
		require.NoError(t, specs.Check([]string{"a/b=c"}))
	}
}

func write(folder, name string, content []byte) error {
	return os.WriteFile(filepath.Join(folder, name), content, 0o600)
}

// TestLinks: a driver may keep its specs elsewhere in the folder of its node.
func TestLinks(t *testing.T) {
	t.Parallel()
	root := folderOf(t, map[string]string{"kept": "{cdiVersion: 0.6.0, kind: a/b}"})
	folder := filepath.Join(root, "cdi")
	require.NoError(t, os.Mkdir(folder, 0o755))
	require.NoError(t, os.Symlink("../kept", filepath.Join(folder, "a.json")))
	require.NoError(t, os.Symlink(filepath.Join(root, "kept"), filepath.Join(folder, "b.json")))
	specs, err := Read(root, folder)
	require.NoError(t, err)
	require.Len(t, specs, 2)
}

// TestMuch: many specs are bounded in total too.
func TestMuch(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	large := "{cdiVersion: 0.6.0, kind: a/b}\n#" + strings.Repeat("x", mostInFile-100)
	for i := range mostInAll/mostInFile + 1 {
		require.NoError(t, write(folder, fmt.Sprintf("%02d.yaml", i), []byte(large)))
	}
	specs, err := readAlone(folder)
	require.ErrorContains(t, err, "read CDI specs: those up to 16.yaml have more than 16777216 bytes")
	require.Len(t, specs, mostInAll/mostInFile)
}

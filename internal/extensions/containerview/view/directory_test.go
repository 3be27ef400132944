package view

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// box is the folder of a container, as kwok sees it.
type box struct {
	t         *testing.T
	directory Directory
	env       []string
}

func newBox(t *testing.T, c containerview.Container) *box {
	t.Helper()
	// A process that is started meanwhile has the programs open for writing, and such do not run.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	directory, err := OpenDirectory(t.TempDir())
	require.NoError(t, err)
	pod := prepared("p")
	p, err := planFor(pod, []containerview.Container{c}, hosts{directory, ""})
	require.NoError(t, err)
	require.NoError(t, directory.writeFolder(&folder{Namespace: "default", Name: "p", UID: pod.UID}, &p.content))
	b := &box{t: t, directory: directory}
	for _, variable := range directory.newEnvironment(directory.containerFolder(pod.UID, c.Name), c.Env) {
		pair := variable.(map[string]any)
		b.env = append(b.env, pair["name"].(string)+"="+pair["value"].(string))
	}
	return b
}

// runs runs a program as kwok does, which finds it on its own PATH.
func (b *box) runs(code int, want, program string, arguments ...string) {
	b.t.Helper()
	if _, err := os.Stat(filepath.Join(b.directory.programsFolder(), program)); err == nil {
		program = filepath.Join(b.directory.programsFolder(), program)
	}
	command := exec.CommandContext(b.t.Context(), program, arguments...)
	command.Dir, command.Env = b.directory.containerFolder("uid-of-p", "c")+"/root", b.env
	output, _ := command.CombinedOutput()
	require.Equal(b.t, want, string(output))
	require.Equal(b.t, code, command.ProcessState.ExitCode())
}

// TestPrograms runs what stands in for programs.
func TestPrograms(t *testing.T) {
	t.Parallel()
	mounts := append([]v1alpha1.Mount{{HostPath: "/etc/fake", ContainerPath: "/etc/gpu dir"}}, smi...)
	b := newBox(t, containerview.Container{
		Name: "c", Env: []string{"B=2", "A=a b"}, Mounts: mounts,
		DeviceNodes: []v1alpha1.DeviceNode{{Path: "/dev/nvidia0"}}, Devices: []containerview.Device{nvidia("GPU-1", nil)},
	})
	require.NoError(t, os.MkdirAll(filepath.Join(b.directory.hostFolder(), "etc/fake"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(b.directory.hostFolder(), "etc/fake/f"), []byte("text\n"), 0o644))

	b.runs(0, "B=2\nA=a b\n", "env")
	b.runs(0, "B=2\nA=a b\n", "printenv")
	b.runs(0, "a b\n", "printenv", "A")
	b.runs(0, "a b\n", "sh", "-c", "echo $A")
	b.runs(0, "X=1\n", "env", "-i", "X=1")
	b.runs(0, "text\n", "cat", "/etc/gpu dir/f")
	b.runs(0, "text\ntext\n", "cat", "etc/gpu dir/f", "/etc/gpu dir/f")
	b.runs(0, "text\n", "sh", "-c", "cat '/etc/gpu dir/f'")
	b.runs(0, "     1\ttext\n", "cat", "-n", "/etc/gpu dir/f")
	b.runs(1, "cat: /etc/hostname: No such file or directory\n", "cat", "/etc/hostname")
	b.runs(1, "cat: /none: No such file or directory\ntext\n", "cat", "/none", "/etc/gpu dir/f")
	b.runs(0, "dev\netc\nusr\n", "ls")
	b.runs(0, "nvidia0\n", "ls", "/dev")
	b.runs(0, "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n", "nvidia-smi", "-L")
	b.runs(0, smiTable(gpusOf(&containerview.Container{Devices: []containerview.Device{nvidia("GPU-1", nil)}})), "nvidia-smi")
	b.runs(2, "nvidia-smi: a fake node knows it without arguments and with -L\n", "nvidia-smi", "-q")
}

// TestProgramsWithoutView: where no view is asked for, a program is what it always is.
func TestProgramsWithoutView(t *testing.T) {
	t.Parallel()
	b := newBox(t, containerview.Container{Name: "c"})
	b.runs(127, "nvidia-smi: not in this container\n", "nvidia-smi")
	b.env = []string{"PATH=" + b.directory.programsFolder() + ":/usr/bin:/bin", "X=1"}
	file := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(file, []byte("text\n"), 0o600))
	b.runs(0, "text\n", "cat", file)
	b.runs(0, "1\n", "printenv", "X")
}

func TestOpenDirectory(t *testing.T) {
	t.Parallel()
	_, err := OpenDirectory("/a:b")
	require.ErrorContains(t, err, "there may be no colon")
	file := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = OpenDirectory(file)
	require.ErrorContains(t, err, "choose one that kwok-dra may write to")
	others := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(others, "bin"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(others, "bin", "cat"), []byte("someone else's"), 0o755))
	_, err = OpenDirectory(others)
	require.ErrorContains(t, err, "bin/cat is another program, and would be replaced: choose a directory of its own")
	require.NoError(t, os.Remove(filepath.Join(others, "bin", "cat")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(others, "bin", "cat"), 0o600))
	_, err = OpenDirectory(others)
	require.ErrorContains(t, err, "bin/cat is another program")
}

// TestFolders: what is found after a restart, and what was not finished.
func TestFolders(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	opened, err := openFolders(directory)
	require.NoError(t, err)
	pod := prepared("p")
	p, err := planFor(pod, []containerview.Container{{Name: "c", Env: []string{"A=1"}, Mounts: smi}}, hosts{opened.directory, ""})
	require.NoError(t, err)
	require.NoError(t, opened.writeFolder(pod, p))
	require.Equal(t, p.totalSize(), opened.size)
	host := filepath.Join(opened.directory.hostFolder(), "usr/bin/nvidia-smi")
	require.NoError(t, os.MkdirAll(host, 0o755))
	for _, name := range []string{unfinished + "x", "of someone else"} {
		require.NoError(t, os.MkdirAll(filepath.Join(opened.directory.podsFolder(), name, "f"), 0o755))
	}

	again, err := openFolders(directory)
	require.NoError(t, err)
	require.Equal(t, opened.folderOf(opened.podKeys()[0]), again.folderOf(opened.podKeys()[0]))
	require.Equal(t, opened.size, again.size)
	left, err := os.ReadDir(again.directory.podsFolder())
	require.NoError(t, err)
	require.Len(t, left, 2)
	require.DirExists(t, filepath.Join(again.directory.podsFolder(), "of someone else", "f"))

	again.size = mostOfAll
	other := prepared("other")
	require.ErrorContains(t, again.writeFolder(other, p), "run fewer pods, or several replicas")
	again.size = p.totalSize()
	require.NoError(t, again.removeFolder(again.podKeys()[0]))
	require.Zero(t, again.size)
	require.NoDirExists(t, again.directory.podFolder(pod.UID))
	require.DirExists(t, host, "links are not followed")
}

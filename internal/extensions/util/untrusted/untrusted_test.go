package untrusted

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/util/namedfile"
)

// folderOf is a folder with a file of each kind.
func folderOf(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "u") //nolint:usetesting // its paths are too long for sockets
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(folder)) })
	in := func(name string) string { return filepath.Join(folder, name) }
	require.NoError(t, os.Mkdir(in("inside"), 0o755))
	require.NoError(t, os.WriteFile(in("inside/file"), []byte("text"), 0o600))
	require.NoError(t, os.WriteFile(in("outside"), []byte("text"), 0o600))
	require.NoError(t, syscall.Mkfifo(in("inside/fifo"), 0o600))
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", in("inside/socket"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	for name, target := range map[string]string{
		"link": "file", "absolute": in("inside/file"), "out": "../outside", "zero": "/dev/zero", "to-fifo": "fifo", "dangling": "none", "loop": "loop",
	} {
		require.NoError(t, os.Symlink(target, in("inside/"+name)))
	}
	return folder
}

// TestReadFiles: each kind of file by each way to read one. Where nothing is wanted, the text is read.
func TestReadFiles(t *testing.T) {
	t.Parallel()
	const device = "it is a device, and must be a regular file"
	folder := filepath.Join(folderOf(t), "inside")
	type want struct{ own, linked, in string }
	for name, want := range map[string]want{
		"file":     {},
		"fifo":     {"it is a FIFO", "it is a FIFO", "it is a FIFO"},
		"socket":   {"it is a socket", "it is a socket", "it is a socket"},
		".":        {"it is a directory", "it is a directory", "out of"},
		"link":     {own: "it is a symbolic link"},
		"absolute": {own: "it is a symbolic link"},
		"out":      {own: "it is a symbolic link", in: "it is a symbolic link out of " + folder},
		"zero":     {"it is a symbolic link", device, "it is a symbolic link out of"},
		"to-fifo":  {"it is a symbolic link", "it is a FIFO", "it is a FIFO"},
		"dangling": {"it is a symbolic link", "no such file", "it is a symbolic link to nothing"},
		"loop":     {"it is a symbolic link", "too many", "too many"},
		"none":     {"no such file", "no such file", "no such file"},
	} {
		path := filepath.Join(folder, name)
		for way, read := range map[string]func() ([]byte, error){
			want.own + "\x00own":       func() ([]byte, error) { return ReadFile(path, 10) },
			want.linked + "\x00linked": func() ([]byte, error) { return ReadLinked(path, 10) },
			want.in + "\x00in":         func() ([]byte, error) { return ReadFileIn(folder, path, 10) },
		} {
			text, way, _ := strings.Cut(way, "\x00")
			content, err := read()
			if text != "" {
				require.ErrorContains(t, err, text, name+" "+way)
				continue
			}
			require.NoError(t, err, name+" "+way)
			require.Equal(t, "text", string(content))
		}
	}
	_, err := ReadFile("/dev/zero", 10)
	require.ErrorContains(t, err, device)
	_, err = ReadFileIn(folder, filepath.Join(folder, "none"), 10)
	require.ErrorIs(t, err, fs.ErrNotExist, "a file that has just gone is told from a link to nothing")
	_, err = ReadFileIn(folder, filepath.Join(folder, "dangling"), 10)
	require.NotErrorIs(t, err, fs.ErrNotExist)
}

// TestLimits: the error names the limit, which the content may just have.
func TestLimits(t *testing.T) {
	t.Parallel()
	folder := folderOf(t)
	file := filepath.Join(folder, "inside", "file")
	for _, read := range []func(int64) ([]byte, error){
		func(limit int64) ([]byte, error) { return ReadFile(file, limit) },
		func(limit int64) ([]byte, error) { return ReadLinked(file, limit) },
		func(limit int64) ([]byte, error) { return ReadFileIn(folder, file, limit) },
	} {
		_, err := read(4)
		require.NoError(t, err)
		_, err = read(3)
		require.ErrorIs(t, err, namedfile.ErrTooLarge)
		require.EqualError(t, err, "read "+file+": it has more than 3 bytes: too large")
	}
	tail, err := ReadTail(file, 3)
	require.NoError(t, err)
	require.Equal(t, "ext", string(tail))
	_, err = ReadTail(filepath.Join(folder, "inside", "fifo"), 3)
	require.ErrorContains(t, err, "it is a FIFO")
}

func TestReadDir(t *testing.T) {
	t.Parallel()
	folder := folderOf(t)
	entries, err := ReadDir(folder, 2)
	require.NoError(t, err)
	require.Len(t, entries, 2)
	_, err = ReadDir(folder, 1)
	require.EqualError(t, err, "list "+folder+": it has more than 1 entries: too large")
	_, err = ReadDir(filepath.Join(folder, "inside", "fifo"), 10)
	require.Error(t, err)
	_, err = ReadDir(filepath.Join(folder, "none"), 10)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

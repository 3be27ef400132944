package atomicfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// names are those in a folder, hidden ones too.
func names(t *testing.T, folder string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return all
}

// TestWrite: a file is replaced by another one with that mode, whatever the umask is.
func TestWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	require.NoError(t, Write(file, []byte("before"), 0o600))
	before, err := os.Stat(file)
	require.NoError(t, err)
	require.NoError(t, Write(file, []byte("after"), 0o666))
	now, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o666), now.Mode())
	require.False(t, os.SameFile(before, now), "who has the old one open still reads all of that")
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "after", string(content))
	require.Equal(t, []string{"f"}, names(t, filepath.Dir(file)))
}

// TestSynced: the content is on the disk before it gets its name, and then the name is. A disk that
// fails is an error, and leaves what was there.
func TestSynced(t *testing.T) {
	defer func(before func(*os.File) error) { syncFile = before }(syncFile)
	folder := t.TempDir()
	file := filepath.Join(folder, "f")
	require.NoError(t, os.WriteFile(file, []byte("before"), 0o600))
	var synced []string
	syncFile = func(f *os.File) error {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		kind := "content"
		if f.Name() == folder {
			kind = "folder"
		}
		synced = append(synced, kind+" over "+string(content))
		return f.Sync()
	}
	require.NoError(t, Write(file, []byte("after"), 0o600))
	require.Equal(t, []string{"content over before", "folder over after"}, synced)

	syncFile = func(*os.File) error { return syscall.EIO }
	require.ErrorIs(t, Write(file, []byte("later"), 0o600), syscall.EIO)
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "after", string(content))
	require.Equal(t, []string{"f"}, names(t, folder))
	syncFile = func(f *os.File) error {
		if f.Name() == folder {
			return syscall.EINVAL
		}
		return nil
	}
	require.NoError(t, Write(file, []byte("later"), 0o600), "not every file system syncs folders")
}

// TestNothingIsLeft: a write that fails leaves what was there, and nothing beside it.
func TestNothingIsLeft(t *testing.T) {
	folder := t.TempDir()
	taken := filepath.Join(folder, "folder")
	require.NoError(t, os.MkdirAll(filepath.Join(taken, "full"), 0o755))
	require.ErrorContains(t, Write(taken, []byte("x"), 0o600), "write "+taken+": rename")
	require.Equal(t, []string{"folder"}, names(t, folder))

	file := filepath.Join(folder, "f")
	require.NoError(t, Write(file, []byte("before"), 0o600))
	limitFileSize(t, 1<<10)
	err := Write(file, make([]byte, 1<<20), 0o600)
	require.ErrorIs(t, err, syscall.EFBIG, "as on a full disk")
	require.Equal(t, []string{"f", "folder"}, names(t, folder))
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "before", string(content))

	require.ErrorIs(t, Write(filepath.Join(folder, "none", "f"), nil, 0o600), fs.ErrNotExist)
}

// limitFileSize has writes beyond a size fail until the test ends. It is for the whole process.
func limitFileSize(t *testing.T, size uint64) {
	t.Helper()
	var before syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before))
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: before.Max}))
	t.Cleanup(func() { require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before)) })
}

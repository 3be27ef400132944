package namedfile

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRead: a user may name a pipe, and the error names the limit, which the content may just have.
func TestRead(t *testing.T) {
	t.Parallel()
	file, fifo := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, os.WriteFile(file, []byte("text"), 0o600))
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	content, err := Read(file, 4)
	require.NoError(t, err)
	require.Equal(t, "text", string(content))
	_, err = Read(file, 3)
	require.ErrorIs(t, err, ErrTooLarge)
	require.EqualError(t, err, "read "+file+": it has more than 3 bytes: too large")
	content, err = Read(fifo, 10)
	require.NoError(t, err)
	require.Empty(t, content)
	_, err = Read("/dev/zero", 1000)
	require.ErrorIs(t, err, ErrTooLarge)

	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	_, err = writer.WriteString("text")
	require.NoError(t, err)
	require.NoError(t, writer.Close())
	content, err = Read("/dev/fd/"+strconv.Itoa(int(reader.Fd())), 10)
	require.NoError(t, err)
	require.Equal(t, "text", string(content))
	require.NoError(t, reader.Close())
}

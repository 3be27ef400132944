package renewals

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// TestBrokenFrames passes on what it cannot read, for the decoder to complain of.
func TestBrokenFrames(t *testing.T) {
	t.Parallel()
	whole := encode(t, runtime.ContentTypeProtobuf, watch.Event{Type: watch.Modified, Object: heartbeat("1", 0)})[4:]
	r := &frameReader{last: map[string]uint64{}}
	require.False(t, r.renewal(whole))
	require.True(t, r.renewal(whole))
	for i := range whole {
		broken := append([]byte(nil), whole[:i]...)
		require.False(t, r.renewal(broken), "the first %d bytes", i)
		flipped := append([]byte(nil), whole...)
		flipped[i] ^= 0xff
		r.renewal(flipped) // whatever it is, it does not panic
	}
}

// oneByOne yields its frames as a framer does.
type oneByOne struct {
	frames []string
	closed bool
}

func (o *oneByOne) Read(data []byte) (int, error) {
	if len(o.frames) == 0 {
		return 0, io.EOF
	}
	n := copy(data, o.frames[0])
	if o.frames[0] = o.frames[0][n:]; o.frames[0] != "" {
		return n, io.ErrShortBuffer
	}
	o.frames = o.frames[1:]
	return n, nil
}

func (o *oneByOne) Close() error {
	o.closed = true
	return nil
}

// TestLongFrames are read whole, and in parts where there is no room.
func TestLongFrames(t *testing.T) {
	t.Parallel()
	want := []string{strings.Repeat("a", 3*firstBuffer), "b", strings.Repeat("c", firstBuffer)}
	frames := &oneByOne{frames: append([]string(nil), want...)}
	r := &frameReader{ReadCloser: frames}
	var have []string
	for frame, data := "", make([]byte, 1000); ; {
		n, err := r.Read(data)
		frame += string(data[:n])
		if errors.Is(err, io.ErrShortBuffer) {
			require.NotZero(t, n)
			continue
		}
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		have, frame = append(have, frame), ""
	}
	require.Equal(t, want, have)
	require.NoError(t, r.Close())
	require.True(t, frames.closed)
}

// TestPause lets renewals gather, and passes on at once what is none.
func TestPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		frame := func(version, holder string) string {
			return string(encode(t, runtime.ContentTypeProtobuf, watch.Event{Type: watch.Modified, Object: lease(version, holder, 0)})[4:])
		}
		r := &frameReader{
			ReadCloser: &oneByOne{frames: []string{frame("1", "a"), frame("2", "a"), frame("3", "a"), frame("4", "b")}},
			pause:      time.Second, last: map[string]uint64{},
		}
		data, start := make([]byte, firstBuffer), time.Now()
		_, err := r.Read(data)
		require.NoError(t, err)
		require.Zero(t, time.Since(start))
		_, err = r.Read(data)
		require.NoError(t, err)
		require.Equal(t, time.Second, time.Since(start), "after the first of two renewals")
	})
}

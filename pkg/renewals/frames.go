package renewals

import (
	"errors"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// framer takes a watch apart into frames of an event each, without those that are
// renewals.
type framer struct {
	runtime.Framer
	pause time.Duration
}

// NewFrameReader implements runtime.Framer.
func (f framer) NewFrameReader(watch io.ReadCloser) io.ReadCloser {
	return &frameReader{ReadCloser: f.Framer.NewFrameReader(watch), pause: f.pause, last: map[string]uint64{}}
}

// frameReader reads the frames of one watch.
type frameReader struct {
	// ReadCloser yields a frame each time, in parts where there is too little room.
	io.ReadCloser
	buffer []byte
	// left is what has not been read of the frame in the buffer.
	left []byte
	// last has the content, hashed, of the objects that the watch has told of, by
	// their UIDs.
	last map[string]uint64

	// pause, where it is not 0, is made after a renewal, and what gathers meanwhile is
	// read within burst.
	pause  time.Duration
	paused time.Time // when the last pause ended
}

// burst is enough to read some hundred renewals.
const burst = 5 * time.Millisecond

// firstBuffer is room for the events of most nodes.
const firstBuffer = 8 << 10

// Read reads a frame. Where there is too little room for it the error is
// io.ErrShortBuffer, and the rest comes with the next calls, as from the framers of
// apimachinery.
func (r *frameReader) Read(data []byte) (int, error) {
	for len(r.left) == 0 {
		frame, err := r.frame()
		if err != nil {
			return 0, err
		}
		if !r.renewal(frame) {
			r.left = frame
		} else if r.pause > 0 && time.Since(r.paused) > burst {
			<-time.After(r.pause)
			r.paused = time.Now()
		}
	}
	n := copy(data, r.left)
	if r.left = r.left[n:]; len(r.left) > 0 {
		return n, io.ErrShortBuffer
	}
	return n, nil
}

// frame reads a whole frame.
func (r *frameReader) frame() ([]byte, error) {
	if r.buffer == nil {
		r.buffer = make([]byte, firstBuffer)
	}
	for size := 0; ; {
		n, err := r.ReadCloser.Read(r.buffer[size:])
		size += n
		if !errors.Is(err, io.ErrShortBuffer) {
			return r.buffer[:size], err
		}
		r.buffer = append(r.buffer, make([]byte, len(r.buffer))...)
	}
}

// renewal reports whether a frame says nothing that the watch has not said already.
// What cannot be read is for the decoder to complain of.
func (r *frameReader) renewal(frame []byte) bool {
	event, err := readEvent(frame)
	if err != nil || event.renewed == nil {
		return false
	}
	content, err := event.content()
	if err != nil {
		return false
	}
	before, known := r.last[string(event.uid)]
	same := known && before == content
	switch string(event.kind) {
	case "DELETED":
		delete(r.last, string(event.uid))
	case "ADDED", "MODIFIED":
		if !same {
			r.last[string(event.uid)] = content
		}
	}
	return same && string(event.kind) == "MODIFIED"
}

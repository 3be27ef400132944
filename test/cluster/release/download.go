package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// A Downloader puts programs of releases into a directory.
type Downloader struct {
	// Partial is the directory of what is not complete yet. It outlives a failed or
	// interrupted download, so that the next one continues there.
	Partial string
	// Progress is told how much of a file is there, of how much, in bytes. Of is -1
	// where the server does not say.
	Progress func(f File, done, of int64)
	// Backoff is the pause before attempt n, 1 being the second. Optional, default
	// is n seconds.
	Backoff func(n int) time.Duration
	// Hurry gives up on a server that is slower than it would be to compile the
	// programs.
	Hurry bool
}

// A pace is what a server has to keep.
type pace struct {
	// attempts bounds how often a connection that breaks is made again.
	attempts int
	// Within each interval there have to be so many bytes.
	interval time.Duration
	bytes    int
}

var (
	patient = pace{attempts: 5, interval: time.Minute, bytes: 1}
	// hurried takes a quarter of an hour for the 400 MiB of a cluster.
	hurried = pace{attempts: 2, interval: 10 * time.Second, bytes: 4 << 20}
)

func tooLittle(bytes int) string {
	if bytes == 1 {
		return "nothing"
	}
	return fmt.Sprintf("less than %d MiB", bytes>>20)
}

func (d Downloader) newPace() pace {
	if d.Hurry {
		return hurried
	}
	return patient
}

// errPermanent is in the chain of errors that another attempt cannot mend.
var errPermanent = errors.New("the server refuses")

// Download downloads f, verifies it, and puts the program into dir.
func (d Downloader) Download(ctx context.Context, f File, dir string) error {
	published, err := d.downloadSmall(ctx, f.Sums)
	if err != nil {
		return err
	}
	sum, err := f.findChecksum(published)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(d.Partial, 0o755); err != nil {
		return fmt.Errorf("create directory of partial downloads: %w", err)
	}
	// What is there under this name is the beginning of this very file.
	partial := filepath.Join(d.Partial, sum)
	if err := d.retryDownload(ctx, func() error { return d.fetchRest(ctx, f, partial) }); err != nil {
		return fmt.Errorf("download %s: %w", f.URL, err)
	}
	if err := verifyChecksum(f, partial, sum); err != nil {
		return errors.Join(err, os.Remove(partial))
	}
	if err := installProgram(f, partial, filepath.Join(dir, f.Program)); err != nil {
		return err
	}
	return os.Remove(partial)
}

func (d Downloader) retryDownload(ctx context.Context, do func() error) error {
	for n := 1; ; n++ {
		err := do()
		if err == nil || errors.Is(err, errPermanent) || n == d.newPace().attempts {
			return err
		}
		pause := time.Duration(n) * time.Second
		if d.Backoff != nil {
			pause = d.Backoff(n)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// downloadSmall downloads a small file.
func (d Downloader) downloadSmall(ctx context.Context, address string) (content []byte, err error) {
	err = d.retryDownload(ctx, func() error {
		content, err = d.newPace().readAll(ctx, address)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("download checksums %s: %w", address, err)
	}
	return content, nil
}

func (p pace) readAll(ctx context.Context, address string) ([]byte, error) {
	response, end, err := p.requestFrom(ctx, address, 0)
	if err != nil {
		return nil, err
	}
	defer end()
	return io.ReadAll(io.LimitReader(response.Body, 16<<20))
}

// fetchRest appends to partial what it lacks of f.
func (d Downloader) fetchRest(ctx context.Context, f File, partial string) error {
	out, err := os.OpenFile(partial, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("%w: %w", errPermanent, err)
	}
	defer func() { _ = out.Close() }() // a write that failed has said so
	info, err := out.Stat()
	if err != nil {
		return err
	}
	done := info.Size()
	response, end, err := d.newPace().requestFrom(ctx, f.URL, done)
	if err != nil {
		return err
	}
	defer end()
	switch response.StatusCode {
	case http.StatusRequestedRangeNotSatisfiable:
		return nil // all of it is there, or the checksum will tell
	case http.StatusOK: // from the beginning
		done = 0
		if err := out.Truncate(0); err != nil {
			return err
		}
	}
	of := response.ContentLength
	if of >= 0 {
		of += done
	}
	_, err = io.Copy(out, &reader{body: response.Body, tell: func(n int) {
		done += int64(n)
		if d.Progress != nil {
			d.Progress(f, done, of)
		}
	}})
	return err
}

// requestFrom requests a file from an offset. The returned function ends the request.
// A request that gets too little is ended too.
func (p pace) requestFrom(ctx context.Context, address string, from int64) (*http.Response, func(), error) {
	ctx, cancel := context.WithCancelCause(ctx)
	body := &watched{ctx: ctx, pace: p}
	body.watchdog = time.AfterFunc(p.interval, func() {
		cancel(fmt.Errorf("the server sent %s in %s", tooLittle(p.bytes), p.interval))
	})
	end := func() { body.watchdog.Stop(); cancel(nil) }
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		end()
		return nil, nil, fmt.Errorf("%w: %w", errPermanent, err)
	}
	if from > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		defer end()
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err // the caller names the URL
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, nil, err
	}
	if err := refusalError(response, from); err != nil {
		_ = response.Body.Close()
		end()
		return nil, nil, err
	}
	body.ReadCloser, response.Body = response.Body, body
	return response, func() { end(); _ = response.Body.Close() }, nil
}

func refusalError(response *http.Response, from int64) error {
	switch code := response.StatusCode; {
	case code == http.StatusOK, from > 0 && (code == http.StatusPartialContent || code == http.StatusRequestedRangeNotSatisfiable):
		return nil
	case code >= 500 || code == http.StatusTooManyRequests:
		return errors.New(response.Status)
	default:
		return fmt.Errorf("%w: %s", errPermanent, response.Status)
	}
}

// watched is a body whose reads keep the watchdog quiet.
type watched struct {
	io.ReadCloser
	ctx      context.Context
	watchdog *time.Timer
	pace     pace
	received int // since the watchdog was last reset
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if w.received += n; w.received >= w.pace.bytes {
		w.received = 0
		w.watchdog.Reset(w.pace.interval)
	}
	if err != nil && w.ctx.Err() != nil {
		err = context.Cause(w.ctx)
	}
	return n, err
}

// reader tells how much was read.
type reader struct {
	body io.Reader
	tell func(n int)
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	r.tell(n)
	return n, err
}

func verifyChecksum(f File, file, want string) error {
	in, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("verify %s: %w", f.URL, err)
	}
	defer func() { _ = in.Close() }() // only read
	hash := sha256.New()
	if _, err := io.Copy(hash, in); err != nil {
		return fmt.Errorf("verify %s: %w", f.URL, err)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != want {
		return fmt.Errorf("verify %s: its SHA-256 is %s, but %s says %s: the download was removed", f.URL, got, f.Sums, want)
	}
	return nil
}

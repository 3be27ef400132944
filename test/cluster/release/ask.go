package release

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"
)

// Ask reports why files cannot be downloaded: it asks for the checksum
// and for the beginning of each, of all at the same time, until ctx ends.
func Ask(ctx context.Context, files []File) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan error, len(files))
	for _, f := range files {
		go func() { answers <- f.askServer(ctx) }()
	}
	for range files {
		err := <-answers
		if unknown, ok := errors.AsType[*net.DNSError](err); ok {
			return fmt.Errorf("%s: %s", unknown.Name, unknown.Err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f File) askServer(ctx context.Context) error {
	once := pace{attempts: 1, interval: time.Hour, bytes: 1} // ctx ends it sooner
	published, err := once.readAll(ctx, f.Sums)
	if err != nil {
		return fmt.Errorf("%s: %w", hostOf(f.Sums), err)
	}
	if _, err := f.findChecksum(published); err != nil {
		return err
	}
	// Not HEAD, which signed addresses do not allow.
	_, end, err := once.requestFrom(ctx, f.URL, 1)
	if err != nil {
		return fmt.Errorf("%s: %w", hostOf(f.URL), err)
	}
	end()
	return nil
}

func hostOf(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return address
	}
	return parsed.Host
}

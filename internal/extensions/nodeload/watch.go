package nodeload

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

const (
	// A reflector asks for watches of five to ten minutes, the kubelet for those of ConfigMaps and Secrets of 30 to 60.
	watchTimeout       = 5 * time.Minute
	objectWatchTimeout = 30 * time.Minute
	// A reflector waits that long after a failure, and twice as long after each further one.
	firstBackoff = 800 * time.Millisecond
	lastBackoff  = 30 * time.Second
	// shortestWatch is how long a watch must have lasted to be opened again at once.
	shortestWatch = time.Second
)

// errExpired says that a watch has to begin with all objects again.
var errExpired = errors.New("the resource version has expired")

// watchOf is what is watched.
type watchOf struct {
	resource, path string
	fieldSelector  string
	timeout        time.Duration
}

// keepWatch watches as a reflector of client-go does until ctx ends, but keeps nothing of what it reads except for the
// resource version with which the next watch begins.
func (c *client) keepWatch(ctx context.Context, of watchOf, isListed bool) {
	version, backoff := "", firstBackoff
	for ctx.Err() == nil {
		began := time.Now()
		err := c.watchOnce(ctx, of, isListed, &version)
		if errors.Is(err, errExpired) {
			version = ""
		}
		if err == nil && time.Since(began) >= shortestWatch {
			backoff = firstBackoff
			continue
		}
		if !waitFor(ctx, time.Duration((1+rand.Float64())*float64(backoff))) {
			return
		}
		backoff = min(2*backoff, lastBackoff)
	}
}

// watchOnce lists if it has to, and watches until the API server ends the watch. A client-go before 0.35 lists, later ones
// ask for a watch that begins with all objects.
func (c *client) watchOnce(ctx context.Context, of watchOf, isListed bool, version *string) error {
	query := url.Values{"watch": {"true"}, "allowWatchBookmarks": {"true"}}
	setSelector(query, of)
	seconds := int64(of.timeout.Seconds() * (1 + rand.Float64()))
	query.Set("timeoutSeconds", strconv.FormatInt(seconds, 10))
	switch {
	case *version == "" && isListed:
		var err error
		if *version, err = c.listVersion(ctx, of); err != nil {
			return err
		}
		fallthrough
	case *version != "":
		query.Set("resourceVersion", *version)
	default:
		query.Set("sendInitialEvents", "true")
		query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan))
	}
	r := &request{verb: "watch", resource: of.resource, path: of.path, query: query}
	response, err := c.openWatch(ctx, r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	open := c.metrics.watches.WithLabelValues(c.component, of.resource)
	open.Inc()
	defer open.Dec()
	if c.isProtobuf {
		return readProtobufEvents(response.Body, version)
	}
	return readJSONEvents(response.Body, version)
}

// openWatch returns once the API server has accepted a watch.
func (c *client) openWatch(ctx context.Context, r *request) (*http.Response, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case c.dials <- struct{}{}:
	}
	response, err := c.roundTrip(ctx, r)
	<-c.dials
	if err != nil {
		if ctx.Err() == nil {
			c.metrics.count(ctx, c.component, r, "error", err)
		}
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		c.countAnswer(ctx, r, response.StatusCode, nil, nil)
		return response, nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	_ = response.Body.Close()
	c.countAnswer(ctx, r, response.StatusCode, err, body)
	if response.StatusCode == http.StatusGone {
		return nil, errExpired
	}
	return nil, fmt.Errorf("watch %s: status %d", r.path, response.StatusCode)
}

func setSelector(query url.Values, of watchOf) {
	if of.fieldSelector != "" {
		query.Set("fieldSelector", of.fieldSelector)
	}
}

// listVersion lists from the API server's cache, and returns the version of the list.
func (c *client) listVersion(ctx context.Context, of watchOf) (string, error) {
	query := url.Values{"limit": {"500"}, "resourceVersion": {"0"}}
	setSelector(query, of)
	listed := c.send(ctx, time.Now(), &request{verb: "list", resource: of.resource, path: of.path, query: query})
	if listed.code != http.StatusOK {
		return "", fmt.Errorf("list %s: status %d", of.path, listed.code)
	}
	var list metav1.PartialObjectMetadataList
	if !c.isProtobuf {
		return decodedVersion(list.GetResourceVersion, json.Unmarshal(listed.body, &list))
	}
	return decodedVersion(list.GetResourceVersion, unmarshalBody(listed.body, &list))
}

func decodedVersion(version func() string, err error) (string, error) {
	if err != nil {
		return "", fmt.Errorf("decode a list: %w", err)
	}
	return version(), nil
}

// protobufPrefix begins each object that is encoded as protobuf.
var protobufPrefix = []byte("k8s\x00")

// unmarshalBody decodes a part of an object of any kind.
func unmarshalBody(data []byte, into interface{ Unmarshal(data []byte) error }) error {
	var unknown runtime.Unknown
	encoded, isProtobuf := bytes.CutPrefix(data, protobufPrefix)
	if !isProtobuf {
		return errors.New("it is no protobuf")
	}
	if err := unknown.Unmarshal(encoded); err != nil {
		return err
	}
	return into.Unmarshal(unknown.Raw)
}

// frames are buffers for events. A watch has one only while it reads an event: most wait.
var frames = sync.Pool{New: func() any { return new([]byte) }}

// readProtobufEvents reads until the stream ends, and notes the version of each event.
func readProtobufEvents(stream io.Reader, version *string) error {
	var length [4]byte
	for {
		if _, err := io.ReadFull(stream, length[:]); err != nil {
			return endOfStream(err)
		}
		if err := readProtobufEvent(stream, binary.BigEndian.Uint32(length[:]), version); err != nil {
			return err
		}
	}
}

func readProtobufEvent(stream io.Reader, length uint32, version *string) error {
	if length > maxAnswer {
		return fmt.Errorf("an event has %d bytes", length)
	}
	buffer := frames.Get().(*[]byte)
	defer frames.Put(buffer)
	if cap(*buffer) < int(length) {
		*buffer = make([]byte, length)
	}
	frame := (*buffer)[:length]
	if _, err := io.ReadFull(stream, frame); err != nil {
		return err
	}
	var event metav1.WatchEvent
	var object metav1.PartialObjectMetadata
	if err := event.Unmarshal(frame); err != nil {
		return fmt.Errorf("decode an event: %w", err)
	}
	if event.Type == string(apiwatch.Error) {
		return errExpired
	}
	if err := unmarshalBody(event.Object.Raw, &object); err != nil {
		return fmt.Errorf("decode the object of an event: %w", err)
	}
	*version = object.ResourceVersion
	return nil
}

// readJSONEvents reads until the stream ends, and notes the version of each event. It decodes nothing: a slice may have a
// hundred devices, and a decoder would keep a buffer of that size for each watch. Quotes separate tokens, and a quote in a
// string is escaped, so no content of an object is taken for a field.
func readJSONEvents(stream io.Reader, version *string) error {
	reader := bufio.NewReaderSize(stream, 256)
	var before, last string // the tokens before
	for {
		token, err := reader.ReadSlice('"')
		if errors.Is(err, bufio.ErrBufferFull) {
			before, last = "", ""
			continue
		}
		if err != nil {
			return endOfStream(err)
		}
		token = token[:len(token)-1]
		switch {
		case before == "resourceVersion" && last == ":":
			*version = string(token)
		case before == "type" && last == ":" && string(token) == string(apiwatch.Error):
			return errExpired
		}
		before, last = last, knownToken(token)
	}
}

// knownToken is a token that readJSONEvents looks for, or "". It allocates nothing.
func knownToken(token []byte) string {
	switch string(token) {
	case "resourceVersion":
		return "resourceVersion"
	case "type":
		return "type"
	case ":":
		return ":"
	}
	return ""
}

// endOfStream is nil if the API server has ended a watch.
func endOfStream(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

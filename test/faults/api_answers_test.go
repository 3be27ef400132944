package faults

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	restwatch "k8s.io/client-go/rest/watch"
)

// refusal is an answer of the API server's own.
type refusal struct {
	code    int
	reason  metav1.StatusReason
	message string
}

var (
	timedOut = refusal{http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "request did not complete within the requested timeout"}
	lostRace = refusal{http.StatusConflict, metav1.StatusReasonConflict, "the object has been modified; please apply your changes to the latest version and try again"}
	tooOld   = refusal{http.StatusGone, metav1.StatusReasonExpired, "too old resource version"}
)

// statuses are the answers of a server that has done nothing.
var statuses = map[fault]refusal{
	tooMany:     {http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests, please try again later"},
	broken:      {http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcdserver: leader changed"},
	unavailable: {http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "apiserver is shutting down"},
	expired:     tooOld,
	unknown:     {http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource"},
	unready:     {http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "the server is currently unable to handle the request"},
}

func (r refusal) status() *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(r.code), Reason: r.reason, Message: r.message,
	}
}

func answer(w http.ResponseWriter, r refusal) {
	w.Header().Set("Content-Type", "application/json")
	if r.code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(r.code)
	_ = json.NewEncoder(w).Encode(r.status())
}

const protobuf = runtime.ContentTypeProtobuf

// streamExpired begins a watch with the event that its resource version is too
// old, in the form that the client asked for.
func streamExpired(w http.ResponseWriter, r *http.Request) {
	kind := runtime.ContentTypeJSON
	if strings.Contains(r.Header.Get("Accept"), protobuf) {
		kind = protobuf
	}
	w.Header().Set("Content-Type", kind+";stream=watch")
	w.WriteHeader(http.StatusOK)
	if err := encodeEvent(w, kind, &watch.Event{Type: watch.Error, Object: tooOld.status()}); err != nil {
		panic(err)
	}
}

func encodeEvent(w io.Writer, kind string, event *watch.Event) error {
	info, known := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), kind)
	if !known {
		return fmt.Errorf("encode event: %s is not known", kind)
	}
	v1 := schema.GroupVersion{Version: "v1"}
	events := streaming.NewEncoder(info.StreamSerializer.NewFrameWriter(w), scheme.Codecs.EncoderForVersion(info.StreamSerializer.Serializer, v1))
	return restwatch.NewEncoder(events, scheme.Codecs.EncoderForVersion(info.Serializer, v1)).Encode(event)
}

// frames are the events of a watch as they come over the network.
type frames struct {
	body  *bufio.Reader
	lines bool
}

func framesOf(response *http.Response) *frames {
	return &frames{body: bufio.NewReader(response.Body), lines: !strings.Contains(response.Header.Get("Content-Type"), protobuf)}
}

// next reads one event: a line of JSON, or a length and as many bytes.
func (f *frames) next() ([]byte, error) {
	if f.lines {
		return f.body.ReadBytes('\n')
	}
	head := make([]byte, 4)
	if _, err := io.ReadFull(f.body, head); err != nil {
		return nil, err
	}
	frame := slices.Concat(head, make([]byte, binary.BigEndian.Uint32(head)))
	_, err := io.ReadFull(f.body, frame[4:])
	return frame, err
}

// rest passes on all that follows.
func (f *frames) rest(w io.Writer) error {
	_, err := io.Copy(w, f.body)
	return err
}

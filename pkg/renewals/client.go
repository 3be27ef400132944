// Package renewals leaves signs of life out of watches: the heartbeats of Nodes,
// and the renewals of Leases. A fleet of fake nodes does little else. To decode,
// queue and compare such an event takes ten times as long as to recognize it by its
// bytes.
package renewals

import (
	"fmt"
	"net"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// LeaveOut returns a client that does what the given one does, but for its
// watches in protobuf: those of Nodes leave heartbeats out, those of Leases
// renewals. So the resource version of a watched object may be older than the API
// server's, and the age of a heartbeat is unknown. Bookmarks arrive as usual.
// Requests for the core and the coordination group go by HTTP/1.1, each at a time
// through a connection of its own, so the client is for informers of these.
func LeaveOut(client kubernetes.Interface, config *rest.Config) (kubernetes.Interface, error) {
	core, err := restClient(config, "/api", corev1.SchemeGroupVersion, 0)
	if err != nil {
		return nil, err
	}
	coordination, err := restClient(config, "/apis", coordinationv1.SchemeGroupVersion, leasePause)
	if err != nil {
		return nil, err
	}
	return &quietClient{Interface: client, core: typedcorev1.New(core), coordination: typedcoordinationv1.New(coordination)}, nil
}

type quietClient struct {
	kubernetes.Interface
	core         typedcorev1.CoreV1Interface
	coordination typedcoordinationv1.CoordinationV1Interface
}

func (c *quietClient) CoreV1() typedcorev1.CoreV1Interface { return c.core }

func (c *quietClient) CoordinationV1() typedcoordinationv1.CoordinationV1Interface {
	return c.coordination
}

// leasePause is how long renewals of leases may gather. A thousand come in a
// second, and to be woken for each takes more than to read it; a lease changes hands
// after many seconds only.
const leasePause = 100 * time.Millisecond

// dialer finds a connection dead as soon as client-go's pings do with HTTP/2, after
// 45 s.
var dialer = net.Dialer{
	Timeout:         30 * time.Second,
	KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 6},
}

func restClient(config *rest.Config, path string, version schema.GroupVersion, pause time.Duration) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	// With HTTP/2 each event wakes one goroutine more, and is acknowledged.
	config.NextProtos = []string{"http/1.1"}
	if config.Dial == nil {
		config.Dial = dialer.DialContext
	}
	config.APIPath, config.GroupVersion = path, &version
	config.NegotiatedSerializer = codecs{rest.CodecFactoryForGeneratedClient(scheme.Scheme, scheme.Codecs).WithoutConversion(), pause}
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make client for %s: %w", version, err)
	}
	return client, nil
}

// codecs are those of all clients, but for how streams of protobuf are taken
// apart.
type codecs struct {
	runtime.NegotiatedSerializer
	pause time.Duration
}

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (c codecs) SupportedMediaTypes() []runtime.SerializerInfo {
	types := append([]runtime.SerializerInfo(nil), c.NegotiatedSerializer.SupportedMediaTypes()...)
	for i := range types {
		if types[i].MediaType != runtime.ContentTypeProtobuf || types[i].StreamSerializer == nil {
			continue
		}
		stream := *types[i].StreamSerializer
		stream.Framer = framer{stream.Framer, c.pause}
		types[i].StreamSerializer = &stream
	}
	return types
}

package checkdriver

import (
	"context"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/plugin"
	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/root"
)

// look is how often the kubelet and the statements poll.
const look = 100 * time.Millisecond

// kubelet stands in for the kubelet of the fake node.
type kubelet struct {
	*plugin.Set
	root     *root.Root
	problems *problems
	stop     context.CancelFunc
	running  sync.WaitGroup

	mu sync.Mutex
	// drivers are those that have registered, in the order in which they first did.
	drivers []string
}

// startKubelet makes the folders of the node, and lets drivers register until stopWatching.
func startKubelet(ctx context.Context, folder string, node *corev1.Node) (*kubelet, error) {
	directory, err := root.OpenDirectory(folder)
	if err != nil {
		return nil, err
	}
	made, err := directory.Make(node.Name, node.UID)
	if err != nil {
		return nil, err
	}
	k := &kubelet{root: made, problems: &problems{}}
	k.Set = plugin.NewSet(plugin.Options{
		Endpoint:      made.Endpoint,
		Changed:       k.recordDriver,
		HealthChanged: func(string) {},
		Calls: func(ctx context.Context, method string, request, response any, conn *grpc.ClientConn, invoker grpc.UnaryInvoker, options ...grpc.CallOption) error {
			return invoker(ctx, method, request, response, conn, options...)
		},
	})
	ctx, k.stop = context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), klog.New(k.problems)))
	k.running.Go(func() { k.watchSockets(ctx) })
	return k, nil
}

// stopWatching stops looking for drivers.
func (k *kubelet) stopWatching() {
	k.stop()
	k.running.Wait()
}

func (k *kubelet) watchSockets(ctx context.Context) {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	sockets := plugin.NewSockets(k.Set)
	defer sockets.Wait()
	for ctx.Err() == nil {
		found, err := k.root.Sockets()
		if err != nil {
			klog.FromContext(ctx).Error(err, "Looking for DRA plugins failed, trying again")
		}
		sockets.Sync(ctx, found)
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// recordDriver records the name of a driver that registers.
func (k *kubelet) recordDriver(driver string) {
	registered := k.Has(driver)
	k.mu.Lock()
	defer k.mu.Unlock()
	if registered && !slices.Contains(k.drivers, driver) {
		k.drivers = append(k.drivers, driver)
	}
}

// problems is a log that keeps the last error, which tells why a driver is not registered.
type problems struct {
	mu   sync.Mutex
	last string
}

func (p *problems) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// Init implements klog.LogSink.
func (*problems) Init(klog.RuntimeInfo) {}

// Enabled implements klog.LogSink.
func (*problems) Enabled(level int) bool { return level == 0 }

// Info implements klog.LogSink. The kubelet logs what it tries again.
func (p *problems) Info(_ int, _ string, keysAndValues ...any) {
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		if err, ok := keysAndValues[i+1].(error); ok {
			p.Error(err, "")
		}
	}
}

// Error implements klog.LogSink.
func (p *problems) Error(err error, _ string, _ ...any) {
	if err == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = err.Error()
}

// WithValues implements klog.LogSink.
func (p *problems) WithValues(...any) klog.LogSink { return p }

// WithName implements klog.LogSink.
func (p *problems) WithName(string) klog.LogSink { return p }

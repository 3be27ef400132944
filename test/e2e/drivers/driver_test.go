package drivers

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"

	"github.com/kwok-dra/kwok-dra/test/drivers/file"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// The calls of a plugin, and how they end.
const (
	getInfo   = "GetInfo"
	notify    = "NotifyRegistrationStatus"
	prepare   = "NodePrepareResources"
	unprepare = "NodeUnprepareResources"

	succeeded = " succeeded"
	failed    = " failed"
)

// driver is the file driver of one node, and what it has been asked.
type driver struct {
	*file.Driver
	s *scene

	mu    sync.Mutex
	calls []string
	// counts are by method, and by method and how the call has ended.
	counts map[string]int
	answer answer
}

// answer stands between the kubelet and a driver, which handle asks.
type answer func(ctx context.Context, method string, handle func() (any, error)) (any, error)

// newDriver starts the driver of a new node.
func (s *scene) newDriver(node string, adjust ...func(*file.Options)) *driver {
	s.Helper()
	s.newNode(node)
	return s.start(node, adjust...)
}

// start starts a driver of a node, and waits until it has registered and published its devices.
func (s *scene) start(node string, adjust ...func(*file.Options)) *driver {
	s.Helper()
	d := &driver{s: s, counts: map[string]int{}}
	d.start(node, adjust...)
	d.eventually(notify+succeeded, 1)
	d.published()
	return d
}

func (d *driver) start(node string, adjust ...func(*file.Options)) {
	d.s.Helper()
	root := filepath.Join(d.s.plugins, node)
	options := file.Options{
		Client: d.s.Client, Name: driverOf(node), Node: node, Devices: 4,
		Registry: filepath.Join(root, "plugins_registry"), Plugins: filepath.Join(root, "plugins"), CDI: filepath.Join(root, "cdi"),
		Intercept: d.intercept,
	}
	for _, f := range adjust {
		f(&options)
	}
	started, err := file.Start(d.s.Context(), options)
	require.NoError(d.s, err)
	d.Driver = started
	d.s.Cleanup(started.Stop)
}

// again starts a driver that has stopped.
func (d *driver) again() {
	d.s.Helper()
	before := d.count(notify + succeeded)
	d.start(d.Node, func(o *file.Options) { *o = d.Options })
	d.eventually(notify+succeeded, before+1)
}

// published waits for the slices of the driver, and returns their UIDs.
func (d *driver) published() (uids []types.UID) {
	d.s.Helper()
	d.s.Eventually(harness.Patience, func() string {
		uids = nil
		for _, slice := range d.s.Pool(d.Node, d.Name) {
			uids = append(uids, slice.UID)
		}
		if len(uids) == 0 {
			return "no slices of driver " + d.Name
		}
		return ""
	})
	return uids
}

// wiped waits until the driver has no slices.
func (d *driver) wiped() {
	d.s.Helper()
	d.s.Eventually(harness.Patience, func() string {
		if pool := d.s.Pool(d.Node, d.Name); len(pool) > 0 {
			return fmt.Sprintf("driver %s has %d slices, want none", d.Name, len(pool))
		}
		return ""
	})
}

func (d *driver) intercept(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	method := path.Base(info.FullMethod)
	answer := d.note(method, request)
	handle := func() (any, error) { return handler(ctx, request) }
	if answer == nil {
		answer = func(context.Context, string, func() (any, error)) (any, error) { return handle() }
	}
	response, err := answer(ctx, method, handle)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.counts[method+failed]++
	} else {
		d.counts[method+succeeded]++
	}
	return response, err
}

// note notes a call, and returns what is to answer it. What is chance is not noted: a kubelet can use a
// plugin before it has told it so, and asks again where GetInfo takes more than a second.
func (d *driver) note(method string, request any) answer {
	call := []string{method}
	if r, ok := request.(interface{ GetClaims() []*drav1.Claim }); ok {
		for _, claim := range r.GetClaims() {
			call = append(call, claim.GetName())
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counts[method]++
	at := len(d.calls)
	if method == notify {
		for at > 0 && d.calls[at-1] != getInfo {
			at--
		}
	}
	if method != getInfo || at == 0 || d.calls[at-1] != getInfo {
		d.calls = slices.Insert(d.calls, at, strings.Join(call, " "))
	}
	return d.answer
}

// since are the calls after the first n.
func (d *driver) since(n int) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.calls[n:])
}

// last is the last call.
func (d *driver) last() string {
	calls := d.since(0)
	return calls[len(calls)-1]
}

// count is how often a method was called, or ended in one way.
func (d *driver) count(what string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counts[what]
}

// eventually waits until a method was called, or ended in one way, so often.
func (d *driver) eventually(what string, count int) {
	d.s.Helper()
	d.s.Eventually(harness.Patience, func() string {
		if have := d.count(what); have < count {
			return fmt.Sprintf("driver %s: %q %d times, want %d: %v", d.Name, what, have, count, d.since(0))
		}
		return ""
	})
}

// answers has the driver answer in another way, or in its own when it is nil.
func (d *driver) answers(a answer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answer = a
}

// fails has the calls of a method fail.
func (d *driver) fails(method string) {
	d.instead(method, func(context.Context) (any, error) { return nil, errors.New("simulated failure") })
}

// blocks has the calls of a method wait until they are released, or their time is up.
func (d *driver) blocks(method string) (release func()) {
	released := make(chan struct{})
	d.answers(func(ctx context.Context, called string, handle func() (any, error)) (any, error) {
		if called == method {
			select {
			case <-released:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return handle()
	})
	return func() { close(released) }
}

// instead answers the calls of a method.
func (d *driver) instead(method string, respond func(ctx context.Context) (any, error)) {
	d.answers(func(ctx context.Context, called string, handle func() (any, error)) (any, error) {
		if called == method {
			return respond(ctx)
		}
		return handle()
	})
}

// plugin adds options of the helper.
func plugin(options ...kubeletplugin.Option) func(*file.Options) {
	return func(o *file.Options) { o.Plugin = append(o.Plugin, options...) }
}

// quickPod is a Pod that comes and goes as fast as a kubelet lets it.
func quickPod(name, node string, claims ...string) *corev1.Pod {
	pod := harness.NewPod(name, node, claims...)
	pod.Annotations = map[string]string{}
	for _, stage := range []string{"pod-ready", "pod-complete", "pod-delete", "pod-create"} {
		pod.Annotations[stage+".stage.kwok.x-k8s.io/delay"] = "100ms"
		pod.Annotations[stage+".stage.kwok.x-k8s.io/jitter-delay"] = "100ms"
	}
	return pod
}

// createPod creates a Pod with a claim of its own for a device of each class; of the node's, if
// there is none.
func (s *scene) createPod(name, node string, classes ...string) {
	s.Helper()
	if len(classes) == 0 {
		classes = []string{node}
	}
	s.CreateClaim(node, name, harness.ClaimSpec(classes...))
	s.CreatePod(node, quickPod(name, node, name))
}

// runs creates a Pod, and waits until it runs.
func (s *scene) runs(name, node string, classes ...string) {
	s.Helper()
	s.createPod(name, node, classes...)
	s.Running(node, name)
}

// gone deletes a Pod, and waits until it is gone.
func (s *scene) gone(name, node string) {
	s.Helper()
	s.DeletePod(node, name, 1)
	s.Gone(node, name)
}

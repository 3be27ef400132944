package nodeload

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	apiwait "k8s.io/apimachinery/pkg/util/wait"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/internal/controller/loop"
	"github.com/kwok-dra/kwok-dra/internal/controller/shard"
	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/internal/observe/cached"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// versionInterval is how often the API server is asked for its version until it answers.
const versionInterval = 5 * time.Second

// Options configure a Controller.
type Options struct {
	Client kubernetes.Interface
	// The caller runs Caches and Owner.
	Caches  *observe.Caches
	Owner   *shard.Owner
	Metrics *Metrics
}

// Controller sends the requests of kubelets and drivers for the fake nodes that this replica acts for.
type Controller struct {
	Options

	pods cached.Informer[*podView]
	loop *loop.Loop[string]

	// sender, version and running are set before the loop runs.
	sender  *sender
	version serverVersion
	// running ends with the Controller, not with the reconciliation of a node.
	running context.Context

	mu    sync.Mutex
	nodes map[string]*node
}

// serverVersion is what the version of the API server, which is that of all kubelets, means for their requests.
type serverVersion struct {
	text, commit string
	// lists says that reflectors list before they watch.
	lists bool
}

// firstWatchList is the minor version from which on reflectors list by a watch.
const firstWatchList = 35

// readVersion asks the API server for its version.
func (s *sender) readVersion(ctx context.Context) (serverVersion, error) {
	response, err := s.newClient(identity{}).roundTrip(ctx, &request{verb: "get", path: "/version"})
	if err != nil {
		return serverVersion{}, err
	}
	defer func() { _ = response.Body.Close() }()
	var info apiversion.Info
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&info); err != nil {
		return serverVersion{}, err
	}
	minor, err := strconv.Atoi(strings.TrimRight(info.Minor, "+"))
	return serverVersion{text: info.GitVersion, commit: info.GitCommit[:min(len(info.GitCommit), 7)], lists: err == nil && minor < firstWatchList}, nil
}

// New makes a Controller; Run starts it.
func New(o Options) *Controller {
	c := &Controller{Options: o, pods: newPods(o.Client), nodes: map[string]*node{}}
	c.loop = loop.New("node-load", c.reconcileNode)
	o.Caches.Nodes.Handle(func(name string, _, _ *observe.Node) { c.loop.Add(name) })
	o.Caches.Slices.Handle(cache.TypedResourceEventHandlerFuncs[*facts.Slice]{
		AddFunc: c.enqueueNodeOf,
		DeleteFunc: func(deleted cache.DeletedObject[*facts.Slice]) {
			if deleted.OptionalObj != nil {
				c.enqueueNodeOf(deleted.OptionalObj)
			}
		},
	})
	c.pods.Handle(cache.TypedResourceEventHandlerFuncs[*podView]{
		AddFunc:    c.tellNode,
		UpdateFunc: func(_, pod *podView) { c.tellNode(pod) },
		DeleteFunc: func(deleted cache.DeletedObject[*podView]) {
			if deleted.OptionalObj != nil {
				c.tellNode(deleted.OptionalObj)
			}
		},
	})
	o.Owner.OnChange(c.loop.Add, func() {
		for _, name := range o.Caches.Nodes.Keys() {
			c.loop.Add(name)
		}
	})
	return c
}

func (c *Controller) enqueueNodeOf(slice *facts.Slice) {
	if slice.Node != "" {
		c.loop.Add(slice.Node)
	}
}

// tellNode tells the node of a Pod about the Pod.
func (c *Controller) tellNode(pod *podView) {
	c.mu.Lock()
	running := c.nodes[pod.node]
	c.mu.Unlock()
	if running != nil {
		running.podChanged(pod)
	}
}

// CheckHealth returns an error if the Controller is stuck.
func (c *Controller) CheckHealth() error { return c.loop.CheckHealth() }

// Run sends until ctx ends, to the API server of the configuration.
func (c *Controller) Run(ctx context.Context, config *rest.Config, workers int) error {
	var err error
	if c.sender, err = newSender(config, c.Metrics); err != nil {
		return err
	}
	err = apiwait.PollUntilContextCancel(ctx, versionInterval, true, func(ctx context.Context) (isKnown bool, _ error) {
		var err error
		c.version, err = c.sender.readVersion(ctx)
		return err == nil, nil // the sidecar logs that the API server does not answer
	})
	if err != nil {
		return fmt.Errorf("read the version of the API server: %w", err)
	}
	klog.FromContext(ctx).Info("Sending the requests of kubelets and drivers for each fake node", "kubeletVersion", c.version.text)
	c.running = ctx
	var running sync.WaitGroup
	running.Go(func() { c.pods.Run(ctx) })
	synced := append(c.pods.Synced(), c.Caches.Synced()...)
	if cache.WaitFor(ctx, "", append(synced, c.Owner.Synced()...)...) {
		c.loop.Run(ctx, workers)
	}
	for _, stopped := range c.nodes {
		stopped.sending.Wait()
	}
	running.Wait()
	return nil
}

// reconcileNode starts and stops the requests of a node and of its drivers.
func (c *Controller) reconcileNode(_ context.Context, name string) error {
	object := c.Caches.Nodes.Get(name)
	isOurs := object != nil && c.Owner.Acts(name, true)
	c.mu.Lock()
	current := c.nodes[name]
	c.mu.Unlock()
	if current != nil && (!isOurs || current.uid != object.UID) {
		c.mu.Lock()
		delete(c.nodes, name)
		c.mu.Unlock()
		current.stop()
		current.sending.Wait()
		current = nil
	}
	if !isOurs {
		return nil
	}
	if current == nil {
		current = c.startNode(c.running, object) //nolint:contextcheck // it goes on after the reconciliation
		c.mu.Lock()
		c.nodes[name] = current
		c.mu.Unlock()
		for _, pod := range c.pods.By(podsByNode, name) {
			current.podChanged(pod) //nolint:contextcheck // as long as the node
		}
	}
	drivers := sets.New[string]()
	for _, slice := range c.Caches.Slices.Of(facts.SlicesKey{Node: name}) {
		drivers.Insert(slice.Driver)
	}
	current.setDrivers(drivers) //nolint:contextcheck // as long as the node
	return nil
}

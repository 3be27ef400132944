package devicemetrics

import (
	"encoding/json"
	"hash/maphash"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/controller/shard"
	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/plan"
)

// MaxDevices bounds the devices in the metrics of the whole fleet. The metrics of one node have all.
const MaxDevices = 10_000

// Options are what an Exporter works with. All are required but Owner and TaintRules.
type Options struct {
	Config *config.Store
	// Caches and Owner are run by the caller.
	Caches *observe.Caches
	Owner  *shard.Owner
	// Drivers answers for the drivers of a node. It returns nil while they are not known.
	Drivers func(set *config.Set, node *corev1.Node) containerview.Drivers
	// TaintRules are the DeviceTaintRules of the cluster, and what could not be read of them.
	TaintRules func() (rules []inventory.TaintRule, unseen string)
	// Now is usually time.Now.
	Now func() time.Time
	// Max is usually MaxDevices.
	Max int
}

// Exporter serves the metrics.
type Exporter struct {
	Options

	mu sync.Mutex
	// nodes maps each node to what was last found on it. Entries are replaced, never changed.
	nodes map[string]*nodeDevices
}

// New makes an Exporter.
func New(o Options) *Exporter {
	return &Exporter{Options: o, nodes: map[string]*nodeDevices{}}
}

// Handler serves /metrics/devices for the fleet and /metrics/nodes/NODE/devices for a node.
func (e *Exporter) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics/devices", func(w http.ResponseWriter, r *http.Request) {
		shown, omitted := e.fleetDevices()
		serveExposition(w, r, &exposition{devices: shown, omitted: &omitted, now: e.Now()})
	})
	mux.HandleFunc("GET /metrics/nodes/{node}/devices", func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("node")
		shown, ok := e.devicesOfNode(name)
		if !ok {
			http.Error(w, "node "+name+" is none that this kwok-dra acts for", http.StatusNotFound)
			return
		}
		serveExposition(w, r, &exposition{devices: shown, now: e.Now()})
	})
	return mux
}

// nodeDevices are the devices of a node, as of what they are made from.
type nodeDevices struct {
	set     *config.Set
	version uint64
	// busy are those that Pods have or that are tainted.
	busy []device
	// resting counts the others, and idle has those if hasIdle says so.
	resting int
	idle    []device
	hasIdle bool
	// isIncomplete says that a driver or a device was not known, so the devices are found again for each scrape: the version
	// does not change when drivers come to know more. Devices of real drivers are never known.
	isIncomplete bool
}

// fleetDevices returns the devices of all nodes up to the limit, busy ones first, and how many are left out.
func (e *Exporter) fleetDevices() (shown [][]device, omitted int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	names := e.nodeNames()
	maps.DeleteFunc(e.nodes, func(name string, _ *nodeDevices) bool {
		_, there := slices.BinarySearch(names, name)
		return !there
	})
	left, rules, common := e.Max, e.taintRules(), e.sharedVersion()
	show := func(devices []device) {
		part := devices[:min(left, len(devices))]
		left, omitted = left-len(part), omitted+len(devices)-len(part)
		shown = append(shown, part)
	}
	for _, name := range names {
		show(e.refreshNode(name, rules, common).busy)
	}
	for _, name := range names {
		switch known := e.nodes[name]; {
		case left > 0:
			show(e.withIdle(name, known, rules).idle)
		case known.hasIdle: // of a time when there was room
			without := *known
			without.idle, without.hasIdle = nil, false
			e.nodes[name] = &without
			fallthrough
		default:
			omitted += known.resting
		}
	}
	return shown, omitted
}

// nodeNames returns the names of the nodes that this replica acts for, sorted.
func (e *Exporter) nodeNames() []string {
	names := slices.DeleteFunc(e.Caches.Nodes.Keys(), func(name string) bool { return !e.isServed(name) })
	slices.Sort(names)
	return names
}

func (e *Exporter) isServed(name string) bool {
	return e.Caches.Nodes.Has(name) && e.Owner.Acts(name, true)
}

// devicesOfNode returns the devices of one node. They are not cached: a client that scrapes each node
// would fill the cache with the whole fleet.
func (e *Exporter) devicesOfNode(name string) (shown [][]device, ok bool) {
	if !e.isServed(name) {
		return nil, false
	}
	found := &nodeDevices{set: e.Config.Current()}
	e.findDevices(name, found, e.taintRules(), true)
	return [][]device{found.busy, found.idle}, true
}

// taintRules returns the known DeviceTaintRules.
func (e *Exporter) taintRules() []inventory.TaintRule {
	if e.TaintRules == nil {
		return nil
	}
	rules, _ := e.TaintRules()
	return rules
}

// refreshNode returns the devices of a node, and finds them again if anything has changed. Common is
// the sharedVersion.
func (e *Exporter) refreshNode(name string, rules []inventory.TaintRule, common uint64) *nodeDevices {
	known, set, version := e.nodes[name], e.Config.Current(), e.nodeVersion(name)^common
	if known == nil || known.isIncomplete || known.set != set || known.version != version {
		known = &nodeDevices{set: set, version: version}
		e.findDevices(name, known, rules, false)
		e.nodes[name] = known
	}
	return known
}

// withIdle returns the devices of a node with the idle ones.
func (e *Exporter) withIdle(name string, known *nodeDevices, rules []inventory.TaintRule) *nodeDevices {
	if !known.hasIdle {
		known = &nodeDevices{set: known.set, version: known.version}
		e.findDevices(name, known, rules, true)
		e.nodes[name] = known
	}
	return known
}

// findDevices fills in the devices of a node. A node that has just gone has none.
func (e *Exporter) findDevices(name string, found *nodeDevices, rules []inventory.TaintRule, idle bool) {
	found.hasIdle = idle
	node := e.Caches.Nodes.Get(name)
	if node == nil || found.set == nil {
		return
	}
	drivers := e.Drivers(found.set, node)
	if drivers == nil {
		found.isIncomplete = true
		return
	}
	(&finder{caches: e.Caches, drivers: uninjected{drivers}, rules: rules, node: name}).findDevices(found)
}

var versionSeed = maphash.MakeSeed()

// newVersion returns a hash, and a function that adds a text to it.
func newVersion() (hash *maphash.Hash, add func(text string)) {
	hash = new(maphash.Hash)
	hash.SetSeed(versionSeed)
	return hash, func(text string) {
		_, _ = hash.WriteString(text)
		_ = hash.WriteByte(0)
	}
}

// sharedVersion changes with the DeviceTaintRules, and with the slices of pools that nodes share.
func (e *Exporter) sharedVersion() uint64 {
	hash, add := newVersion()
	for _, rule := range e.taintRules() {
		encoded, _ := json.Marshal(rule) // of strings and a time
		add(string(encoded))
	}
	if set := e.Config.Current(); set != nil {
		for _, t := range set.Shared() {
			for _, slice := range sortedByName(e.Caches.Slices.Of(plan.SharedKey(t))) {
				add(string(slice.UID) + slice.ResourceVersion)
			}
		}
	}
	return hash.Sum64()
}

// nodeVersion changes with what the devices of a node are made from.
func (e *Exporter) nodeVersion(name string) uint64 {
	hash, add := newVersion()
	if node := e.Caches.Nodes.Informer.Get(name); node != nil {
		add(node.Encoded)
	}
	for _, pod := range sortedByName(e.Caches.Pods.On(name)) {
		add(string(pod.UID) + pod.ResourceVersion)
		for _, key := range pod.Claims {
			if claim := e.Caches.Claims.Observed(key); claim != nil {
				add(string(claim.UID) + claim.ResourceVersion)
			}
		}
	}
	for _, slice := range sortedByName(e.Caches.Slices.Of(facts.SlicesKey{Node: name})) {
		add(string(slice.UID) + slice.ResourceVersion)
	}
	return hash.Sum64()
}

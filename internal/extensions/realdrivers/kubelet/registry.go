package kubelet

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/claiminfo"
)

// registry holds the nodes that this replica acts for. Only Kubelets.reconcile changes it, and Run at
// the end.
type registry struct {
	mu sync.Mutex
	// running has the nodes that could be started, failures why others could not. A node is in one of
	// both at most.
	running  map[string]*node
	failures map[string]*failure
	// absentSince says since when a folder has no Node.
	absentSince map[string]time.Time
}

func newRegistry() registry {
	return registry{running: map[string]*node{}, failures: map[string]*failure{}, absentSince: map[string]time.Time{}}
}

// runningNode returns what stands in for the kubelet of a node, or nil.
func (r *registry) runningNode(name string) *node {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running[name]
}

func (r *registry) runningNames() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.running))
}

// addRunning adds a node that was started.
func (r *registry) addRunning(n *node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.failures, n.name)
	r.running[n.name] = n
}

// stopNode stops what stands in for the kubelet of a node, if anything does, and waits for it.
func (r *registry) stopNode(name string) {
	r.mu.Lock()
	n := r.running[name]
	delete(r.running, name)
	r.mu.Unlock()
	if n != nil {
		n.lifetime.stop()
		n.lifetime.running.Wait()
	}
}

// failureOf returns why a node cannot serve real drivers, or nil.
func (r *registry) failureOf(name string) *failure {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failures[name]
}

func (r *registry) forgetFailure(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.failures, name)
}

// recordFailure records why a node could not be started, and reports whether that is news.
func (r *registry) recordFailure(name string, now *failure) (isNew bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.failures[name]
	r.failures[name] = now
	return before == nil || before.Error() != now.Error()
}

// recordAbsence records that a folder has no Node, and returns since when.
func (r *registry) recordAbsence(name string) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.absentSince[name]; !known {
		r.absentSince[name] = time.Now()
	}
	return r.absentSince[name]
}

func (r *registry) forgetAbsence(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.absentSince, name)
}

// countPlugins counts the registered plugins of all nodes.
func (r *registry) countPlugins() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	count := 0
	for _, n := range r.running {
		count += n.plugins.Len()
	}
	return count
}

// PreparedClaim returns what the kubelet of a node knows of a claim of real drivers, or nil.
func (r *registry) PreparedClaim(node string, claim types.NamespacedName) *claiminfo.Info {
	if n := r.runningNode(node); n != nil {
		return n.claims.Info(claim)
	}
	return nil
}

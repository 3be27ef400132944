package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// mostReplicas is how many sidecars run at once at most.
const mostReplicas = 3

// The ways in which sidecars share the work.
const (
	modeNone   = "none"
	modeLeader = "leader"
	modeLease  = "lease"
)

// The Lease that elects the leader.
const (
	electionNamespace = "kube-system"
	electionLease     = "kwok-dra"
)

// setup says how the sidecars of a seed run.
type setup struct {
	// replicas run at once. More than one of modeNone are twins: each believes to be
	// the only one.
	replicas int
	mode     string
	// selection says which nodes they act for.
	selection selection
}

// newSetup draws a setup. With one sidecar there are twins at times.
func newSetup(random *rand.Rand, firstNode string) setup {
	s := setup{replicas: 1, mode: pick(random, modeNone, modeNone, modeLeader, modeLease, modeLease), selection: newSelection(random, firstNode)}
	switch {
	case s.mode != modeNone:
		s.replicas = mostReplicas
	case random.IntN(4) == 0:
		s.replicas = 2
	}
	return s
}

// areTwins reports whether several sidecars act for the same nodes.
func (s *setup) areTwins() bool { return s.mode == modeNone && s.replicas > 1 }

// traits name what is special about a setup.
func (s *setup) traits() []string {
	var traits []string
	switch {
	case s.mode != modeNone:
		traits = append(traits, s.mode)
	case s.areTwins():
		traits = append(traits, "twins")
	}
	switch {
	case s.selection.single != "":
		traits = append(traits, "single node")
	case s.selection.by != "":
		traits = append(traits, s.selection.by)
	}
	return traits
}

func (s *setup) arguments() []string {
	shared := []string{
		"--config-map", namespace + "/" + configMap, "--enable-crds", "--shard-mode", s.mode,
		"--leader-elect-resource-namespace", electionNamespace, "--leader-elect-resource-name", electionLease,
	}
	return append(shared, s.selection.arguments()...)
}

// replica is a place for a sidecar: a Pod in which one is started again and again.
// It has a proxy of its own, so that it sees the cluster later than the others, or
// not at all.
type replica struct {
	// host is the name of the Pod.
	host  string
	proxy *proxy
	// kubeconfig is one through the proxy.
	kubeconfig string
	// process is nil where none runs.
	process *sidecar.Process
}

// replicas are those of a world.
type replicas struct {
	cluster *cluster.Cluster
	// file is the configuration that sidecars are started with.
	file string

	mu    sync.Mutex
	all   []*replica
	setup setup
	// logs are those of all sidecars since takeAll.
	logs []string
}

// newReplica makes a place for a sidecar with the credentials of a kubeconfig.
func (w *world) newReplica(t testing.TB, number int, kubeconfig string) (*replica, error) {
	p, err := newProxy(t, w.config, &w.ledger, w.touch)
	if err != nil {
		return nil, err
	}
	through, err := p.kubeconfig(kubeconfig, t.TempDir())
	return &replica{host: fmt.Sprintf("kwok-%d", number), proxy: p, kubeconfig: through}, err
}

// arrange says how sidecars are started from now on.
func (rs *replicas) arrange(s setup) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.setup = s
}

// hosts are the names of the Pods in which sidecars run.
func (s *setup) hosts() []string {
	var hosts []string
	for i := range s.replicas {
		hosts = append(hosts, fmt.Sprintf("kwok-%d", i))
	}
	return hosts
}

// launch starts a sidecar in its place.
func (rs *replicas) launch(number int) (*sidecar.Process, error) {
	rs.mu.Lock()
	arguments := append([]string{"--config", rs.file}, rs.setup.arguments()...)
	rs.mu.Unlock()
	return rs.launchWith(number, arguments...)
}

// launchWith starts a sidecar in its place with other arguments.
func (rs *replicas) launchWith(number int, arguments ...string) (*sidecar.Process, error) {
	binary, err := program()
	if err != nil {
		return nil, err
	}
	return rs.launchProgram(number, binary, append([]string{"--host", rs.all[number].host}, arguments...)...)
}

// launchProgram starts another program in the place of a sidecar.
func (rs *replicas) launchProgram(number int, binary string, arguments ...string) (*sidecar.Process, error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r := rs.all[number]
	process, err := sidecar.LaunchProgram(rs.cluster, binary, append([]string{"--kubeconfig", r.kubeconfig}, arguments...)...)
	if err != nil {
		return nil, err
	}
	r.process = process
	rs.logs = append(rs.logs, process.Log)
	return process, nil
}

// replace ends a sidecar, and starts another one in its place.
func (rs *replicas) replace(number int, end func(process *sidecar.Process) error) error {
	running := rs.running()
	if len(running) == 0 {
		return errors.New("there is no sidecar to replace")
	}
	number %= len(running)
	if err := end(running[number]); err != nil {
		return err
	}
	_, err := rs.launch(number)
	return err
}

// running are the sidecars that have been started and not ended.
func (rs *replicas) running() []*sidecar.Process {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	var processes []*sidecar.Process
	for _, r := range rs.all {
		if r.process != nil {
			processes = append(processes, r.process)
		}
	}
	return processes
}

// awaitReady waits until all running sidecars are ready: one may have been started a moment ago.
func (rs *replicas) awaitReady(ctx context.Context) error {
	for _, process := range rs.running() {
		if err := process.WaitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

// launched is how many sidecars were started since takeAll.
func (rs *replicas) launched() int {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return len(rs.logs)
}

// takeAll hands over all sidecars and the logs.
func (rs *replicas) takeAll() (processes []*sidecar.Process, logs []string) {
	processes = rs.running()
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, r := range rs.all {
		r.process = nil
	}
	logs, rs.logs = rs.logs, nil
	return processes, logs
}

func (rs *replicas) stopAll(t testing.TB) {
	processes, _ := rs.takeAll()
	for _, process := range processes {
		if err := process.Kill(); err != nil {
			t.Error(err)
		}
	}
}

// disturb has each proxy play its schedule, or, without schedules, none.
func (rs *replicas) disturb(schedules []*schedule) {
	for i, r := range rs.all {
		var next *schedule
		if i < len(schedules) {
			next = schedules[i]
		}
		if last := r.proxy.schedule.Swap(next); last != nil {
			last.end()
		}
	}
}

// usurp takes the lead from whoever has it, as someone who deletes the Lease does:
// for a moment the old leader and the new one both believe to lead.
func (c clients) usurp(ctx context.Context) error {
	patch := []byte(`{"spec": {"holderIdentity": ""}}`)
	return persist(ctx, func(ctx context.Context) error {
		_, err := c.client.CoordinationV1().Leases(electionNamespace).Patch(ctx, electionLease, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

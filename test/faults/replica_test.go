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

	"github.com/kwok-dra/kwok-dra/test/sidecar"
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

// traits name what is special about a setup.
func (s *setup) traits() []string {
	var traits []string
	switch {
	case s.mode != modeNone:
		traits = append(traits, s.mode)
	case s.replicas > 1:
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
func (w *world) arrange(s setup) {
	w.replicas.mu.Lock()
	defer w.replicas.mu.Unlock()
	w.replicas.setup = s
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
func (w *world) launch(number int) (*sidecar.Process, error) {
	binary, err := program()
	if err != nil {
		return nil, err
	}
	w.replicas.mu.Lock()
	defer w.replicas.mu.Unlock()
	r := w.replicas.all[number]
	arguments := append([]string{"--kubeconfig", r.kubeconfig, "--host", r.host, "--config", w.file}, w.replicas.setup.arguments()...)
	process, err := sidecar.LaunchProgram(w.cluster, binary, arguments...)
	if err != nil {
		return nil, err
	}
	r.process = process
	w.replicas.logs = append(w.replicas.logs, process.Log)
	return process, nil
}

// replace ends a sidecar, and starts another one in its place.
func (w *world) replace(number int, end func(process *sidecar.Process) error) error {
	running := w.running()
	if len(running) == 0 {
		return errors.New("there is no sidecar to replace")
	}
	number %= len(running)
	if err := end(running[number]); err != nil {
		return err
	}
	_, err := w.launch(number)
	return err
}

// running are the sidecars that have been started and not ended.
func (w *world) running() []*sidecar.Process {
	w.replicas.mu.Lock()
	defer w.replicas.mu.Unlock()
	var processes []*sidecar.Process
	for _, r := range w.replicas.all {
		if r.process != nil {
			processes = append(processes, r.process)
		}
	}
	return processes
}

// launched is how many sidecars were started since takeAll.
func (w *world) launched() int {
	w.replicas.mu.Lock()
	defer w.replicas.mu.Unlock()
	return len(w.replicas.logs)
}

// takeAll hands over all sidecars and the logs.
func (w *world) takeAll() (processes []*sidecar.Process, logs []string) {
	processes = w.running()
	w.replicas.mu.Lock()
	defer w.replicas.mu.Unlock()
	for _, r := range w.replicas.all {
		r.process = nil
	}
	logs, w.replicas.logs = w.replicas.logs, nil
	return processes, logs
}

func (w *world) stopAll(t testing.TB) {
	processes, _ := w.takeAll()
	for _, process := range processes {
		if err := process.Kill(); err != nil {
			t.Error(err)
		}
	}
}

// disturb has each proxy play its schedule, or, without schedules, none.
func (w *world) disturb(schedules []*schedule) {
	for i, r := range w.replicas.all {
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
func (w *world) usurp(ctx context.Context) error {
	patch := []byte(`{"spec": {"holderIdentity": ""}}`)
	return w.persist(ctx, func(ctx context.Context) error {
		_, err := w.client.CoordinationV1().Leases(electionNamespace).Patch(ctx, electionLease, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

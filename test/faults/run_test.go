package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/sidecar"
)

const (
	// faultTime is how long the proxy's schedule is made for. Where the workload takes
	// longer, since servers are stopped, it begins again.
	faultTime = 4 * time.Second
	// quiet is how long nothing is to be written before a state counts as settled.
	quiet = time.Second
	// patience is how long nobody wonders what is still wrong.
	patience = 10 * time.Second
	// slack are goroutines more than at the start that are no leak, such as those of
	// one more connection.
	slack = 12
	// busy is how often one object may be asked for or written within a second.
	// Retries are 50 ms, 100 ms, 200 ms and so on apart, and the workload changes some
	// objects several times.
	busy = 25
	// startReads is how much a sidecar may read when it starts.
	startReads = 40
)

// result is what became of a seed.
type result struct {
	seed        uint64
	disruptions []string
	operations  int
	requests    int
	writes      int
	faults      int
	// touched is how many changes of objects the workload may ask of the sidecar.
	touched int
	// launched is how many sidecars were started.
	launched int
	// settled is how long it took after the last fault.
	settled time.Duration
	// times are those at which the seed began, its faults ended, all had been looked
	// at, and nothing was left.
	times []time.Time
	err   error
}

// run is one seed in a world.
type run struct {
	world  *world
	within time.Duration
	log    func(format string, arguments ...any)
	result result
	load   *workload
	// goroutines are those of a sidecar that has nothing to do.
	goroutines float64
}

// newRun draws nothing yet; do does.
func newRun(w *world, seed uint64, within time.Duration, log func(format string, arguments ...any)) *run {
	return &run{world: w, within: within, log: log, result: result{seed: seed}}
}

// do runs a seed from an empty cluster to an empty cluster.
func (r *run) do(ctx context.Context) result {
	r.note()
	random := rand.New(rand.NewPCG(r.result.seed, 0))
	r.load = &workload{world: r.world, prefix: fmt.Sprintf("s%d", r.result.seed), random: random, all: initialTemplates()}
	disruptions := withClockJumps(newDisruptions(random, faultTime), r.result.seed, faultTime)
	twins := random.IntN(8) == 0
	planned := r.load.plan()
	err := r.begin(ctx, twins)
	if err == nil {
		r.world.proxy.schedule.Store(newSchedule(r.result.seed, random, faultTime))
		err = r.disturb(ctx, planned, disruptions)
		r.world.proxy.schedule.Store(nil)
	}
	r.note()
	if err == nil {
		err = errors.Join(r.settle(ctx), r.inspect(ctx))
	}
	r.note()
	r.result.err = errors.Join(err, r.clear(ctx, random.IntN(2) == 0), r.renew(ctx))
	r.note()
	return r.result
}

func (r *run) note() {
	r.result.times = append(r.result.times, time.Now())
}

// begin starts the sidecar, and at times two that both believe to be the only one.
func (r *run) begin(ctx context.Context, twins bool) error {
	r.world.proxy.ledger.reset()
	first, err := r.world.launch()
	if err == nil && twins {
		r.result.disruptions = append(r.result.disruptions, "twins")
		_, err = r.world.launch()
	}
	if err != nil {
		return err
	}
	for _, process := range r.world.running() {
		if err := process.WaitReady(ctx); err != nil {
			return err
		}
	}
	r.goroutines, err = first.Metric(ctx, "go_goroutines")
	return err
}

// disturb has the workload run under all faults.
func (r *run) disturb(ctx context.Context, planned []operation, disruptions []disruption) error {
	var disrupting sync.WaitGroup
	errs := make([]error, len(disruptions))
	disrupting.Go(func() {
		for i, d := range disruptions {
			sleep(ctx, d.after/time.Duration(len(disruptions)))
			errs[i] = d.do(ctx, r.world)
		}
	})
	for _, d := range disruptions {
		r.result.disruptions = append(r.result.disruptions, d.name)
	}
	var err error
	for _, o := range planned {
		if err = r.world.persist(ctx, o.do); err != nil {
			err = fmt.Errorf("%s: %w", o.name, err)
			break
		}
		r.result.operations++
		r.result.touched += o.touches
		sleep(ctx, o.pause)
	}
	disrupting.Wait()
	return errors.Join(append(errs, err)...)
}

// settle waits until all is as the oracle says, and nothing is written any more.
func (r *run) settle(ctx context.Context) error {
	stopped := time.Now()
	var since, told time.Time
	var wrong []string
	for time.Since(stopped) < r.within {
		state, err := r.world.look(ctx, r.load.all)
		if err != nil {
			wrong = []string{err.Error()}
		} else {
			wrong = state.wrong()
		}
		switch {
		case len(wrong) > 0:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) > quiet && r.world.proxy.ledger.quiet() > quiet:
			r.result.settled = since.Sub(stopped)
			return nil
		}
		if time.Since(stopped) > patience && time.Since(told) > patience && len(wrong) > 0 {
			told = time.Now()
			r.log("seed %d, %.0f s after the last fault: %d things are wrong, first %s", r.result.seed, time.Since(stopped).Seconds(), len(wrong), wrong[0])
		}
		sleep(ctx, 100*time.Millisecond)
	}
	if len(wrong) == 0 {
		return fmt.Errorf("%s after the last fault everything is right, and still written", r.within)
	}
	return fmt.Errorf("%s after the last fault %d things are wrong:\n  %s", r.within, len(wrong), strings.Join(wrong[:min(len(wrong), 12)], "\n  "))
}

// inspect looks at the sidecars, and at what they have asked of the API server.
func (r *run) inspect(ctx context.Context) error {
	requests, writes, faults, busiest := r.world.proxy.ledger.counts()
	r.result.requests, r.result.writes, r.result.faults, r.result.launched = requests, writes, faults, r.world.launched()
	sidecars := r.world.running()
	errs := r.hotLoops(busiest, max(1, len(sidecars)))
	for _, process := range sidecars {
		errs = append(errs, process.WaitReady(ctx), r.leaks(ctx, process))
	}
	return errors.Join(errs...)
}

// hotLoops finds more requests than what happened is a reason for.
func (r *run) hotLoops(busiest burst, sidecars int) []error {
	var errs []error
	// Two that see different things, since the watch of one lags, undo each other's
	// writes until both see the same.
	if busiest.count > busy*sidecars {
		errs = append(errs, fmt.Errorf("hot loop: %s came %d times within a second", busiest.key, busiest.count))
	}
	done := &r.result
	// Each change may be written, and be undone by hand; each fault be tried again,
	// and a restarted or a second sidecar do all of it once more.
	if most := 2*done.touched*sidecars + 2*done.faults; done.writes > most {
		errs = append(errs, fmt.Errorf("hot loop: %d writes for %d changes and %d faults, want at most %d", done.writes, done.touched, done.faults, most))
	}
	// What the caches do not have is asked for, and a broken watch begun anew.
	if reads, most := done.requests-done.writes, startReads*done.launched+done.touched+2*done.faults; reads > most {
		errs = append(errs, fmt.Errorf("hot loop: %d reads for %d changes and %d faults, want at most %d", reads, done.touched, done.faults, most))
	}
	return errs
}

// leaks waits until a sidecar has no more goroutines than one that has just been
// started.
func (r *run) leaks(ctx context.Context, process *sidecar.Process) error {
	var now float64
	for deadline := time.Now().Add(r.within); time.Now().Before(deadline); {
		var err error
		if now, err = process.Metric(ctx, "go_goroutines"); err != nil {
			return err
		}
		if now <= r.goroutines+slack {
			return nil
		}
		sleep(ctx, 100*time.Millisecond)
	}
	return fmt.Errorf("goroutines leak: %v, at the start %v", now, r.goroutines)
}

// clear takes all that the seed has made away, the nodes first or the templates,
// and sees that the sidecar leaves nothing over.
func (r *run) clear(ctx context.Context, nodesFirst bool) error {
	steps := []func(ctx context.Context) error{r.deleteNodes, r.emptyConfiguration}
	if !nodesFirst {
		steps[0], steps[1] = steps[1], steps[0]
	}
	for _, step := range append(steps, r.deletePods) {
		if err := r.world.persist(ctx, step); err != nil {
			return fmt.Errorf("clear: %w", err)
		}
	}
	err := r.vanish(ctx)
	processes, logs := r.world.takeAll()
	for _, process := range processes {
		err = errors.Join(err, process.Stop())
	}
	for _, log := range logs {
		err = errors.Join(err, panics(log))
	}
	return err
}

// renew starts those anew who look for a lost API server only once a minute by
// then, so that the next seed has its Pods scheduled.
func (r *run) renew(ctx context.Context) error {
	if !slices.ContainsFunc(r.result.disruptions, func(name string) bool { return name == "apiserver" || name == "etcd" || name == "compaction" }) {
		return nil
	}
	var errs []error
	for _, component := range []string{cluster.Scheduler, cluster.ControllerManager, cluster.Kwok} {
		errs = append(errs, r.world.restart(ctx, 0, component))
	}
	return errors.Join(errs...)
}

var atOnce = metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}

func (r *run) deleteNodes(ctx context.Context) error {
	return r.world.client.CoreV1().Nodes().DeleteCollection(ctx, atOnce, metav1.ListOptions{})
}

func (r *run) emptyConfiguration(ctx context.Context) error {
	return r.world.writeConfigMap(ctx, map[string]string{"configuration": configuration, "templates": ""})
}

func (r *run) deletePods(ctx context.Context) error {
	if err := r.world.client.CoreV1().Pods(namespace).DeleteCollection(ctx, atOnce, metav1.ListOptions{}); err != nil {
		return err
	}
	return r.world.client.ResourceV1().ResourceClaims(namespace).DeleteCollection(ctx, atOnce, metav1.ListOptions{})
}

// vanish waits until nothing is left.
func (r *run) vanish(ctx context.Context) error {
	deadline := time.Now().Add(r.within)
	left := ""
	for time.Now().Before(deadline) {
		state, err := r.world.look(ctx, nil)
		switch {
		case err != nil:
			left = err.Error()
		case len(state.slices)+len(state.pods)+len(state.claims)+len(state.nodes) == 0:
			return nil
		default:
			left = fmt.Sprintf("%d slices, %d pods, %d claims, %d nodes", len(state.slices), len(state.pods), len(state.claims), len(state.nodes))
			if len(state.pods)+len(state.claims) > 0 {
				_ = r.deletePods(ctx)
			}
			if time.Until(deadline) < r.within-patience {
				r.release(ctx, state)
			}
		}
		sleep(ctx, 100*time.Millisecond)
	}
	return fmt.Errorf("%s after all was deleted there are left: %s", r.within, left)
}

// release lets claims go that wait for the claim controller, which after a restart
// of the API server may take minutes. Those that show a device are the sidecar's
// to clear, and stay.
func (r *run) release(ctx context.Context, s *state) {
	for i := range s.claims {
		if len(s.claims[i].Status.Devices) == 0 && len(s.pods) == 0 {
			_, _ = r.world.client.ResourceV1().ResourceClaims(namespace).Patch(ctx, s.claims[i].Name, types.MergePatchType,
				[]byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{})
		}
	}
}

// panics finds a panic in a log, also one that was recovered from, and goroutines
// that were left behind.
func panics(path string) error {
	log, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read log of the sidecar: %w", err)
	}
	for _, sign := range []string{"panic", "fatal error:", "DATA RACE", "unexpected goroutines"} {
		if i := bytes.Index(log, []byte(sign)); i >= 0 {
			return fmt.Errorf("log of the sidecar: %s", log[max(0, i-200):min(len(log), i+1500)])
		}
	}
	return nil
}

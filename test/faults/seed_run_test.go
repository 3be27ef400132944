package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	// faultTime is how long the proxy's schedule is made for. Where the workload takes
	// longer, since servers are stopped, it begins again.
	faultTime = 4 * time.Second
	// quiet is how long nothing is to be written before a state counts as settled.
	quiet = time.Second
	// lookAgain is how long something is left alone before it is looked at again.
	lookAgain = 200 * time.Millisecond
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
	// edits are what was done to the configuration.
	edits      []string
	operations int
	requests   int
	writes     int
	faults     int
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

func (r *result) note() { r.times = append(r.times, time.Now()) }

// run is one seed in a world.
type run struct {
	world  *world
	within time.Duration
	log    func(format string, arguments ...any)
	result result
	load   *workload
	// leavers are nodes that leave the selection at rest.
	leavers map[string]bool
	// editor edits the configuration in the end, and is nil before.
	editor *editor
	// goroutines are those of a sidecar that has nothing to do.
	goroutines float64
}

// newRun draws nothing yet; do does.
func newRun(w *world, seed uint64, within time.Duration, log func(format string, arguments ...any)) *run {
	return &run{world: w, within: within, log: log, result: result{seed: seed}}
}

// do runs a seed from an empty cluster to an empty cluster, and then its features.
func (r *run) do(ctx context.Context) result {
	if *onlyFeatures == "" {
		r.doFleet(ctx)
	}
	if r.result.note(); r.result.err == nil {
		r.result.err = r.visit(ctx)
	}
	r.result.note()
	return r.result
}

// doFleet runs a seed's fleet, which comes and goes.
func (r *run) doFleet(ctx context.Context) {
	r.result.note()
	random := rand.New(rand.NewPCG(r.result.seed, 0))
	r.load = newWorkload(r.world, random, r.result.seed)
	first := r.load.configure()
	disruptions := withClockJumps(newDisruptions(random, r.load.setup.mode, faultTime), r.result.seed, faultTime)
	planned := r.load.plan()
	err := r.begin(ctx, first)
	if err == nil {
		err = r.befall(ctx, planned, disruptions, r.schedules(random))
	}
	for _, part := range []func(ctx context.Context) error{r.poke, r.reap, r.poke, r.late, r.leave, r.edit} {
		if err == nil {
			err = part(ctx)
		}
	}
	r.result.note()
	r.result.err = errors.Join(err, r.clear(ctx, random.IntN(2) == 0), r.world.renew(ctx, r.result.disruptions))
}

// befall has the workload run under all faults, and sees that all comes right, and
// that nothing was retired without a reason.
func (r *run) befall(ctx context.Context, planned []operation, disruptions []disruption, schedules []*schedule) error {
	gone, end, err := r.world.watchRetirements(ctx)
	if err != nil {
		return err
	}
	defer end()
	r.world.disturb(schedules)
	err = r.disturb(ctx, planned, disruptions)
	r.world.disturb(nil)
	r.result.note()
	if err != nil {
		return err
	}
	err = errors.Join(r.settle(ctx), r.inspect(ctx))
	for _, problem := range gone.wrong(r.load) {
		err = errors.Join(err, errors.New(problem))
	}
	return err
}

// schedules are one for each proxy, so that what befalls one replica does not
// befall the others.
func (r *run) schedules(random *rand.Rand) []*schedule {
	var all []*schedule
	for i := range r.load.setup.replicas {
		all = append(all, newSchedule(r.result.seed<<8+uint64(i), random, faultTime))
	}
	return all
}

// begin starts the sidecars. They find the first templates in force: whose claims
// are prepared goes by the drivers that templates name.
func (r *run) begin(ctx context.Context, first operation) error {
	if err := persist(ctx, first.do); err != nil {
		return fmt.Errorf("configure: %w", err)
	}
	if err := persist(ctx, r.load.addDisks); err != nil {
		return fmt.Errorf("add disks: %w", err)
	}
	r.world.ledger.reset()
	setup := r.load.setup
	r.world.arrange(setup)
	if err := r.world.writeFile(content{templates: anchors()}); err != nil {
		return err
	}
	r.result.disruptions = append(r.result.disruptions, setup.traits()...)
	for i := range setup.replicas {
		if _, err := r.world.launch(i); err != nil {
			return err
		}
	}
	for _, process := range r.world.running() {
		if err := process.WaitReady(ctx); err != nil {
			return err
		}
		var err error
		if r.goroutines, err = process.Metric(ctx, "go_goroutines"); err != nil {
			return err
		}
	}
	return nil
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
		if err = persist(ctx, o.do); err != nil {
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

// relaunched reports whether any sidecar was started after the first ones.
func (r *run) relaunched() bool { return r.world.launched() > r.load.setup.replicas }

// look reads all that the oracle looks at.
func (r *run) look(ctx context.Context) (*state, error) {
	s, err := r.world.look(ctx, r.load.all)
	if err != nil {
		return nil, err
	}
	s.relaunched, s.several, s.leavers = r.relaunched(), r.load.setup.replicas > 1, r.leavers
	if r.editor != nil {
		r.editor.see(s)
	}
	return s, nil
}

// verdict is what an oracle says of what there is.
type verdict struct {
	// wrong is what is not as it is to be yet.
	wrong []string
	// rest is how long nothing is to be wrong before a state counts as settled.
	rest time.Duration
	// final is what never comes right any more.
	final error
}

// settle waits until all is as the oracle says, and nothing is written any more.
func (r *run) settle(ctx context.Context) error { return r.settleBy(ctx, r.judge) }

// judge has the oracle look at all.
func (r *run) judge(ctx context.Context) verdict {
	state, err := r.look(ctx)
	if err != nil {
		return verdict{wrong: []string{err.Error()}}
	}
	v := verdict{wrong: state.wrong(), rest: state.rest()}
	for _, process := range r.world.running() {
		if !process.IsReady(ctx) { // what it will write is not known yet
			v.wrong = append(v.wrong, fmt.Sprintf("sidecars: the one with log %s is not ready", filepath.Base(process.Log)))
		}
	}
	if len(v.wrong) == 0 && r.editor != nil {
		v.wrong = r.editor.wrongSignals(ctx, state)
	}
	return v
}

// settleBy waits until all is as an oracle says, and nothing is written any more.
func (r *run) settleBy(ctx context.Context, judge func(ctx context.Context) verdict) error {
	stopped := time.Now()
	var since, told time.Time
	last := verdict{rest: quiet}
	// What has come right in time is looked at for as long as it takes.
	for time.Since(stopped) < r.within || !since.IsZero() && time.Since(since) < last.rest+patience {
		last = judge(ctx)
		last.rest = max(last.rest, quiet)
		if err := r.world.revive(ctx); err != nil {
			last.wrong = append(last.wrong, err.Error())
		}
		switch {
		case last.final != nil:
			return last.final
		case len(last.wrong) > 0:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) > last.rest && r.world.ledger.quiet() > quiet:
			r.result.settled = max(r.result.settled, since.Sub(stopped))
			return nil
		}
		if time.Since(stopped) > patience && time.Since(told) > patience && len(last.wrong) > 0 {
			told = time.Now()
			r.log("seed %d, %.0f s after the last fault: %d things are wrong, first %s", r.result.seed, time.Since(stopped).Seconds(), len(last.wrong), last.wrong[0])
		}
		sleep(ctx, lookAgain)
	}
	if len(last.wrong) == 0 {
		return fmt.Errorf("%s after the last fault everything is right, and still written, last %s", r.within, r.world.ledger.lastWrite())
	}
	return fmt.Errorf("%s after the last fault %d things are wrong:\n  %s", r.within, len(last.wrong), strings.Join(last.wrong[:min(len(last.wrong), 12)], "\n  "))
}

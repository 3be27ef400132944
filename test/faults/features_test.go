package faults

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"time"
)

var onlyFeatures = flag.String("features", "", "run in each seed those features that match this regular expression, and nothing else; each is NAME/WHAT, with what the seed has drawn, as in \"strangers/a FIFO\"; all names are "+strings.Join(featureNames(), ", "))

// feature is something that the worlds of some seeds have besides: a file of its own
// makes it, has it go wrong, and judges what becomes of it.
type feature interface {
	// String says what was drawn.
	fmt.Stringer
	// build makes what is there before anything goes wrong, and starts the sidecars.
	build(ctx context.Context, s *site) error
	// disturb has go wrong what the feature is for. It returns when that is over.
	disturb(ctx context.Context, s *site) error
	// judge says what is not as it is to be, after build and after disturb.
	judge(ctx context.Context, s *site) verdict
}

// featureKind is a kind of feature.
type featureKind struct {
	// name is its row in the summary.
	name string
	// rare says that one seed in that many has it.
	rare int
	// draw draws one. What it does later is up to the same source of chance.
	draw func(random *rand.Rand) feature
}

// featureKinds are all features. Those that take long are rare.
func featureKinds() []featureKind {
	return []featureKind{
		{"installations", 5, newInstallations},
		{"strangers", 4, newStrangers},
		{"restore", 8, newRestore},
		{"replacements", 5, newReplacements},
		{"crashes", 4, newCrashes},
		{"handovers", 8, newHandOvers},
		{"copies", 6, newCopies},
	}
}

func featureNames() []string {
	var names []string
	for _, k := range featureKinds() {
		names = append(names, k.name)
	}
	return names
}

// chosenKinds are those that a seed has. Each has a source of chance of its own, so that
// a new feature changes nothing about a seed but whether the seed has it.
func chosenKinds(seed uint64) []featureKind {
	if *onlyFeatures != "" {
		only := regexp.MustCompile(*onlyFeatures)
		return slices.DeleteFunc(featureKinds(), func(k featureKind) bool {
			return !only.MatchString(k.name + "/" + k.draw(chanceOf(seed, k.name)).String())
		})
	}
	return slices.DeleteFunc(featureKinds(), func(k featureKind) bool { return chanceOf(seed, "whether "+k.name).IntN(k.rare) > 0 })
}

// chanceOf is the source of chance of a feature.
func chanceOf(seed uint64, name string) *rand.Rand {
	return rand.New(rand.NewPCG(seed, hashOf(name)))
}

// visit has the world get one feature after the other. Each begins and ends with an empty
// cluster.
func (r *run) visit(ctx context.Context) error {
	var errs []error
	for _, k := range chosenKinds(r.result.seed) {
		r.result.disruptions = append(r.result.disruptions, k.name)
		random := chanceOf(r.result.seed, k.name)
		s, f := &site{world: r.world, run: r, random: random}, k.draw(random)
		r.log("seed %d has %s: %s", r.result.seed, k.name, f)
		if err := s.stage(ctx, f); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", k.name, err))
		}
	}
	return errors.Join(errs...)
}

// stage has a feature be built, go wrong and come right.
func (s *site) stage(ctx context.Context, f feature) (err error) {
	defer func() { err = errors.Join(err, s.clear(ctx)) }()
	s.ledger.reset()
	s.guardMemory(ctx)
	if s.timing, err = s.writeConfiguration(nil); err != nil {
		return err
	}
	settle := func(ctx context.Context) error {
		return s.run.settleBy(ctx, func(ctx context.Context) verdict { return s.judge(ctx, f) })
	}
	for _, step := range []func(ctx context.Context) error{
		func(ctx context.Context) error { return f.build(ctx, s) },
		settle,
		func(ctx context.Context) error { return f.disturb(ctx, s) },
		settle,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// judge adds to what a feature says what holds for all of them.
func (s *site) judge(ctx context.Context, f feature) verdict {
	judging, cancel := context.WithTimeout(ctx, judgeLimit)
	defer cancel()
	v := f.judge(judging, s)
	v.final = errors.Join(v.final, s.overfed())
	if key, count := s.ledger.mostWritten(); count > mostWrites {
		v.final = errors.Join(v.final, fmt.Errorf("hot loop: %s came %d times, want at most %d", key, count, mostWrites))
	}
	for _, process := range s.running() {
		if peak, err := process.PeakMemory(); err == nil && peak > mostMemory {
			v.final = errors.Join(v.final, fmt.Errorf("memory: a sidecar took %d MiB, want at most %d", peak>>20, mostMemory>>20))
		}
	}
	return v
}

// judgeLimit bounds a look at the cluster and the sidecars, of which one may hang.
const judgeLimit = 30 * time.Second

// What a feature may cost.
const (
	// mostWrites is how often one object may be written by all sidecars together. What is
	// created counts for its collection.
	mostWrites = 60
	// mostMemory is a sidecar's. It collects its garbage so that it needs 200 MiB.
	mostMemory = 384 << 20
	// mostLiving is how much a sidecar is let have before it is killed, so that the machine
	// lives on.
	mostLiving = 512 << 20
)

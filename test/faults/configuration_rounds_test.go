package faults

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

var editRounds = flag.Int("edits", 0, "how often a seed edits the configuration once all is right")

// edit edits the configuration in rounds. Each begins when all is right, so that it
// is certain what was good before, and ends when it is so again.
func (r *run) edit(ctx context.Context) error {
	r.editor = newEditor(r.world, r.load.random, r.load.all)
	for range *editRounds {
		for _, step := range r.editor.draw() {
			err := r.round(ctx, step)
			r.result.edits = append(r.result.edits, r.editor.done...)
			if err != nil {
				return fmt.Errorf("after %s: %w", strings.Join(r.editor.done, ", "), err)
			}
			r.editor.carriers = r.editor.settled()
		}
	}
	return nil
}

// step is what happens in a round.
type step func(ctx context.Context, r *run) error

func (r *run) round(ctx context.Context, step step) error {
	s, err := r.look(ctx)
	if err != nil {
		return err
	}
	seen, err := r.world.witness(ctx)
	if err != nil {
		return err
	}
	defer seen.stop()
	r.editor.watch(s)
	if err := step(ctx, r); err != nil {
		return err
	}
	r.world.disturb(nil)
	if err := r.world.awaitReady(ctx); err != nil {
		return err
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	wrong, err := seen.unjustified(ctx, r.world, r.editor.concerned)
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong[:min(len(wrong), 5)], "\n  "))
	}
	return err
}

// draw chooses what happens in a round, or in rounds that follow each other. Most are
// edits.
func (e *editor) draw() []step {
	switch e.random.IntN(12) {
	case 0:
		return []step{e.definitions}
	case 1:
		return []step{e.create, e.discovery}
	case 2:
		return []step{e.begin}
	case 3:
		return []step{e.create, e.forget}
	}
	return []step{e.edit}
}

// edit makes one edit, at times while calls fail, and has sidecars be started: often
// where something is refused, since those do not know what was good before.
func (e *editor) edit(ctx context.Context, r *run) error {
	disturbed := e.random.IntN(2) == 0
	if disturbed {
		r.world.disturb(r.schedules(e.random))
	}
	next := e.next()
	e.done = append(e.done, next.name)
	if err := e.changeAll(ctx, r, next.changes, disturbed); err != nil {
		return fmt.Errorf("%s: %w", next.name, err)
	}
	chance := 5
	if len(e.forces()[0].refused) > 0 {
		chance = 2
	}
	if e.random.IntN(chance) == 0 {
		return e.restart(e.random.IntN(2) == 0)
	}
	return nil
}

// changeAll makes the changes of an edit. The watches of two carriers may come in any
// order: either what becomes of one change without the other is right too, or all is
// settled between them.
func (e *editor) changeAll(ctx context.Context, r *run, changes []change, disturbed bool) error {
	if disturbed {
		e.concernAlone(changes)
	}
	for i, one := range changes {
		if i > 0 && !disturbed {
			if err := r.settle(ctx); err != nil {
				return err
			}
		}
		if err := e.change(ctx, one); err != nil {
			return err
		}
		if e.random.IntN(4) == 0 {
			sleep(ctx, time.Duration(e.random.Int64N(int64(time.Second)))) // so that the one is seen without the other
		}
	}
	return nil
}

// definitions has the definitions of custom resources go, and come back with the
// objects.
func (e *editor) definitions(ctx context.Context, r *run) error {
	e.done = append(e.done, "definitions go and come")
	before := e.carriers
	names := e.names()
	was := e.wanted()
	for _, name := range names {
		e.carriers = e.without(name)
	}
	e.concern(was)
	if err := r.world.undefine(ctx); err != nil {
		return errors.Join(err, e.world.define(ctx))
	}
	if e.random.IntN(3) == 0 {
		if err := e.restart(true); err != nil {
			return errors.Join(err, e.world.define(ctx))
		}
	}
	if e.random.IntN(2) == 0 {
		if err := r.settle(ctx); err != nil {
			return errors.Join(err, e.world.define(ctx))
		}
	}
	if err := e.world.define(ctx); err != nil {
		return err
	}
	e.random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names {
		says := before[name].newest
		if err := e.change(ctx, change{name, &says}); err != nil {
			return err
		}
	}
	return nil
}

// undefine has the definitions go, and all objects with them.
func (w *world) undefine(ctx context.Context) error {
	_, err := w.cluster.Kubectl(ctx, "delete", "--ignore-not-found", "-k", filepath.Join(sidecar.Root(), "kustomize", "crd"))
	return err
}

// discovery has every sidecar be told once at least that there are no definitions.
func (e *editor) discovery(ctx context.Context, r *run) error {
	e.done = append(e.done, "discovery answers 404")
	schedules := r.schedules(e.random)
	for _, s := range schedules {
		s.phases, s.lag.length = []phase{{length: stuck}}, 0
		s.phases[0].chances[unknown] = 1
	}
	r.world.disturb(schedules)
	return await(ctx, "no sidecar asks for its definitions", func(context.Context) (bool, error) {
		return !slices.ContainsFunc(schedules, func(s *schedule) bool { return !s.asked(v1alpha1.GroupVersion.String()) }), nil
	})
}

// asked reports whether anyone has asked for something whose path ends so.
func (s *schedule) asked(end string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.numbers {
		if strings.HasSuffix(strings.TrimSpace(key), end) {
			return true
		}
	}
	return false
}

// forget has sidecars start while a template is refused that was in force before: they
// have never seen what is published.
func (e *editor) forget(ctx context.Context, _ *run) error {
	refused := e.forces()[0].refused
	good := slices.DeleteFunc(e.names(), func(name string) bool {
		return !strings.HasPrefix(name, kindTemplate) || refused[name] != ""
	})
	name, ok := pickOf(e.random, good)
	if !ok {
		return nil
	}
	says := e.carriers[name].newest
	says.refused = true
	e.done = append(e.done, "refuse "+name)
	if err := e.change(ctx, change{name, &says}); err != nil {
		return err
	}
	return e.restart(e.random.IntN(3) > 0)
}

// create has a template that is an object come into force, unless there is one.
func (e *editor) create(ctx context.Context, _ *run) error {
	if slices.ContainsFunc(e.names(), func(name string) bool { return strings.HasPrefix(name, kindTemplate) }) {
		return nil
	}
	t := initialTemplates()["nic"]
	t.name, t.device = "late", "late"
	e.done = append(e.done, "create late")
	return e.change(ctx, e.into(kindTemplate, t))
}

// begin has a template go while all sidecars start: they have seen it, and not yet
// all others.
func (e *editor) begin(ctx context.Context, r *run) error {
	e.done = append(e.done, "delete a template while sidecars start")
	if err := e.create(ctx, r); err != nil {
		return err
	}
	schedules := r.schedules(e.random)
	for _, s := range schedules {
		s.phases, s.lag.resource, s.lag.length = []phase{{length: stuck}}, "kwokdraconfigurations", mostLag
	}
	r.world.disturb(schedules)
	if err := e.restart(true); err != nil {
		return err
	}
	for _, process := range r.world.running() {
		if err := await(ctx, "a sidecar does not see its templates", func(context.Context) (bool, error) {
			log, err := os.ReadFile(process.Log)
			return strings.Contains(string(log), `"Watching custom resources" kind="`+kindTemplate+`"`), err
		}); err != nil {
			return err
		}
	}
	i := slices.IndexFunc(e.names(), func(name string) bool { return strings.HasPrefix(name, kindTemplate) })
	return e.change(ctx, change{name: e.names()[i]})
}

package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
)

// restore is an etcd that goes back to a backup, as etcdutl does with --bump-revision and
// --mark-compacted: all objects are as they were, with the versions of then, and whoever
// watches lists anew. What the sidecar has written since is undone.
type restore struct {
	all templates
	// again has the sidecar be started anew after the restore, as Kubernetes advises.
	again bool
}

func newRestore(random *rand.Rand) feature {
	return &restore{again: random.IntN(3) == 0, all: templates{"gpu": {name: "gpu", driver: gpuDriver, kinds: []string{"a"}, device: "gpu", count: 8, revision: 1}}}
}

// String says whether there is a restart.
func (f *restore) String() string {
	if f.again {
		return "a restart"
	}
	return "no restart"
}

func (f *restore) arguments(s *site) []string {
	return []string{"--config", s.timing, "--config-map", namespace + "/" + configMap}
}

func (f *restore) node(i int) string { return fmt.Sprint("restore-node-", i) }

// build has some nodes, of which one has a Pod.
func (f *restore) build(ctx context.Context, s *site) error {
	if err := s.configure(ctx, f.all); err != nil {
		return err
	}
	for i := range 3 {
		if err := s.addNode(ctx, f.node(i), map[string]string{kindLabel: "a"}); err != nil {
			return err
		}
	}
	if err := s.start(ctx, 0, f.arguments(s)...); err != nil {
		return err
	}
	return f.give(ctx, s, "early", 0)
}

func (f *restore) give(ctx context.Context, s *site, pod string, number int) error {
	return s.allocate(ctx, boundPod(pod, f.node(0)), device{gpuDriver, f.node(0), fmt.Sprint("gpu-", number)})
}

// disturb makes a backup while Pods wait that the sidecar cannot see, lets it see them, and
// goes back. Nodes, Pods and the configuration change in between.
func (f *restore) disturb(ctx context.Context, s *site) error {
	later := func(ctx context.Context) error {
		for i := range 3 {
			if err := f.give(ctx, s, fmt.Sprint("late-", i), 1+i); err != nil {
				return err
			}
		}
		return nil
	}
	var backup string
	err := s.all[0].proxy.without(func() error {
		if err := later(ctx); err != nil {
			return err
		}
		var err error
		backup, err = s.backUp(ctx)
		return err
	})
	if err != nil {
		return err
	}
	changed := templates{"gpu": f.all["gpu"]}
	gpu := changed["gpu"]
	gpu.count, gpu.revision = 9, 2
	changed["gpu"] = gpu
	if err := s.configure(ctx, changed); err != nil {
		return err
	}
	if err := persist(ctx, func(ctx context.Context) error {
		return s.client.CoreV1().Nodes().Delete(ctx, f.node(2), metav1.DeleteOptions{})
	}); err != nil {
		return err
	}
	if err := s.run.settleBy(ctx, func(ctx context.Context) verdict { return s.judgeState(ctx, changed) }); err != nil {
		return fmt.Errorf("before the restore: %w", err)
	}
	if err := s.goBack(ctx, backup); err != nil || !f.again {
		return err
	}
	return s.startAgain(ctx, f.arguments(s)...)
}

func (f *restore) judge(ctx context.Context, s *site) verdict { return s.judgeState(ctx, f.all) }

// judgeState has the oracle of all seeds look at what there is.
func (s *site) judgeState(ctx context.Context, all templates) verdict {
	there, err := s.list(ctx)
	if err != nil {
		return verdict{wrong: []string{err.Error()}}
	}
	view := &state{inForce: inForce{templates: all}, found: there, relaunched: true}
	if err := s.explain(ctx, view); err != nil {
		return verdict{wrong: []string{err.Error()}}
	}
	return verdict{wrong: view.wrong(), rest: view.rest()}
}

// configure puts templates into the ConfigMap, and what has the sidecar be quick into a file.
func (s *site) configure(ctx context.Context, all templates) error {
	return persist(ctx, func(ctx context.Context) error {
		return s.replaceConfigMap(ctx, map[string]string{"templates": all.yaml()})
	})
}

// without has nothing get through while something is done.
func (p *proxy) without(do func() error) error {
	p.cut.Store(true)
	defer p.cut.Store(false)
	p.server.CloseClientConnections()
	return do()
}

// etcdData is where etcd has its data.
func (w *world) etcdData() string { return filepath.Join(filepath.Dir(w.cluster.Kubeconfig()), "etcd") }

// backUp copies the data of etcd while it does not run.
func (s *site) backUp(ctx context.Context) (string, error) {
	dir, err := s.makeDir()
	if err != nil {
		return "", err
	}
	if err := s.cluster.StopComponent(ctx, cluster.Etcd); err != nil {
		return "", err
	}
	backup := filepath.Join(dir, "etcd")
	if err := os.CopyFS(backup, os.DirFS(s.etcdData())); err != nil {
		return "", fmt.Errorf("back up etcd: %w", err)
	}
	if err := s.cluster.StartComponent(ctx, cluster.Etcd); err != nil {
		return "", err
	}
	return backup, persist(ctx, s.ready)
}

// goBack restores a backup. All programs of Kubernetes are started anew, as it advises.
func (s *site) goBack(ctx context.Context, backup string) error {
	newest, err := s.etcd.revision(ctx)
	if err != nil {
		return err
	}
	for _, component := range []string{cluster.APIServer, cluster.Etcd} {
		if err := s.cluster.StopComponent(ctx, component); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(s.etcdData()); err != nil {
		return fmt.Errorf("restore etcd: %w", err)
	}
	if err := os.CopyFS(s.etcdData(), os.DirFS(backup)); err != nil {
		return fmt.Errorf("restore etcd: %w", err)
	}
	if err := s.cluster.StartComponent(ctx, cluster.Etcd); err != nil {
		return err
	}
	if err := s.etcd.bump(ctx, newest+1000); err != nil {
		return err
	}
	if err := s.cluster.StartComponent(ctx, cluster.APIServer); err != nil {
		return err
	}
	if err := persist(ctx, s.ready); err != nil {
		return err
	}
	for _, component := range others {
		if err := s.restart(ctx, 0, component); err != nil {
			return err
		}
	}
	return nil
}

// bump has etcd be at a later revision, and know none before it.
func (e etcd) bump(ctx context.Context, to int64) error {
	key := map[string]any{"key": []byte("/bump")}
	for {
		at, err := e.revision(ctx)
		if err != nil {
			return err
		}
		if at >= to {
			return e.compact(ctx)
		}
		for range to - at {
			var answer struct{}
			if err := e.ask(ctx, "put", key, &answer); err != nil {
				return err
			}
		}
	}
}

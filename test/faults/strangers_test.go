package faults

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
)

// strangers is a node, a plugin or a document that does what nobody should. It costs its
// own Pods at most: those of other nodes are prepared and unprepared as ever, a node that
// comes is served, and an edit of the configuration is followed.
type strangers struct {
	stranger
	// plugins is the folder of plugins, and view the one for what containers see.
	plugins, view string
	all           templates
	come          bool
	// goroutines are those of the sidecar before the stranger came.
	goroutines float64
	// refusals is how often plugins have refused to be registered.
	refusals atomic.Int64
}

// stranger is one of them.
type stranger struct {
	name string
	// do has it come, on the node strangeNode.
	do func(ctx context.Context, s *site, f *strangers) error
	// again has the sidecar start anew after that, since it reads that then.
	again bool
	// untold says that nobody is to be told. Otherwise an event is to be about a node, the
	// strange Pod or the configuration.
	untold bool
	// hasPod says that it brings the Pod of its node.
	hasPod bool
	// refuses says that it refuses to be registered, which is to be tried some times.
	refuses bool
	// showsHealth says that the Pod is to show the health of its device.
	showsHealth bool
	// viewed says that a folder shows what the containers of Pods see, which one worker writes.
	viewed bool
	// edits says that it is in the configuration, which is not edited then.
	edits bool
}

const (
	strangeNode  = "strange"
	healthyNode  = "healthy"
	newcomer     = "newcomer"
	strangePod   = "strange-pod"
	formerPod    = "former-pod"
	laterPod     = "later-pod"
	strangerKind = "strange"
)

func newStrangers(random *rand.Rand) feature {
	return &strangers{stranger: pick(random, allStrangers()...), all: templates{
		"gpu": {name: "gpu", driver: gpuDriver, kinds: []string{"a", strangerKind}, device: "gpu", count: 4, revision: 1},
	}}
}

func (f *strangers) String() string { return f.name }

func (f *strangers) arguments(s *site) []string {
	arguments := []string{"--config", s.timing, "--config-map", namespace + "/" + configMap}
	if f.viewed {
		arguments = append(arguments, "--container-view", f.view, "--workers", "1")
	}
	return arguments
}

// write puts the templates into the ConfigMap, and more.
func (f *strangers) write(ctx context.Context, s *site, more string) error {
	return persist(ctx, func(ctx context.Context) error {
		return s.replaceConfigMap(ctx, map[string]string{"configuration": f.settings(), "templates": f.all.yaml() + more})
	})
}

// settings say where nodes have their folders.
func (f *strangers) settings() string {
	return fmt.Sprintf(configurationDocument, "plugins", "pluginsDir: "+f.plugins)
}

func (f *strangers) build(ctx context.Context, s *site) (err error) {
	if f.plugins, err = s.makeDir(); err != nil {
		return err
	}
	if f.view, err = s.makeDir(); err != nil {
		return err
	}
	if err := f.write(ctx, s, ""); err != nil {
		return err
	}
	for name, kind := range map[string]string{healthyNode: "a", strangeNode: strangerKind} {
		if err := s.addNode(ctx, name, map[string]string{kindLabel: kind}); err != nil {
			return err
		}
	}
	if err := s.start(ctx, 0, f.arguments(s)...); err != nil {
		return err
	}
	return s.allocate(ctx, boundPod(formerPod, healthyNode), device{gpuDriver, healthyNode, "gpu-0"})
}

// disturb has the stranger come, and after that what is to go on as ever.
func (f *strangers) disturb(ctx context.Context, s *site) error {
	if err := f.do(ctx, s, f); err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	f.come = true
	if !f.hasPod {
		if err := s.allocate(ctx, boundPod(strangePod, strangeNode), device{gpuDriver, strangeNode, "gpu-0"}); err != nil {
			return err
		}
	}
	if f.again {
		if err := s.all[0].process.Kill(); err != nil {
			return err
		}
		if _, err := s.launchWith(0, f.arguments(s)...); err != nil {
			return err
		}
	}
	if !f.edits {
		if err := f.edit(ctx, s); err != nil {
			return err
		}
	}
	if err := s.addNode(ctx, newcomer, map[string]string{kindLabel: "a"}); err != nil {
		return err
	}
	if err := s.finish(ctx, formerPod); err != nil {
		return err
	}
	return s.allocate(ctx, boundPod(laterPod, healthyNode), device{gpuDriver, healthyNode, "gpu-1"})
}

// edit changes the template of the GPUs.
func (f *strangers) edit(ctx context.Context, s *site) error {
	gpu := f.all["gpu"]
	gpu.revision++
	f.all["gpu"] = gpu
	return f.write(ctx, s, "")
}

// wrongPools has the oracle look at the nodes but the strange one.
func (f *strangers) wrongPools(there found) []string {
	view := &state{inForce: inForce{templates: f.all}, found: there}
	view.nodes = maps.Clone(there.nodes)
	delete(view.nodes, strangeNode)
	view.slices = nil
	for i := range there.slices {
		if node := poolOf(&there.slices[i]).node; node != strangeNode {
			view.slices = append(view.slices, there.slices[i])
		}
	}
	return view.wrongPools()
}

func (f *strangers) judge(ctx context.Context, s *site) verdict {
	there, err := s.list(ctx)
	if err != nil {
		return verdict{wrong: []string{err.Error()}}
	}
	v := verdict{wrong: f.wrongPools(there)}
	v.wrong = append(v.wrong, f.wrongGoroutines(ctx, s)...)
	if !f.come {
		v.wrong = append(v.wrong, s.wrongStart(ctx, true, formerPod)...)
		return v
	}
	v.wrong = append(v.wrong, s.wrongStart(ctx, true, laterPod)...)
	v.wrong = append(v.wrong, f.wrongView(there)...)
	v.wrong = append(v.wrong, f.wrongHealth(there)...)
	v.wrong = append(v.wrong, s.wrongStart(ctx, false, formerPod)...)
	if told, err := s.told(ctx, strangeNode, healthyNode, newcomer, strangePod, configMap); err != nil || !told && !f.untold {
		v.wrong = append(v.wrong, fmt.Sprintf("events: none tells of it: %v", err))
	}
	for i := range v.wrong {
		v.wrong[i] = f.name + ": " + v.wrong[i]
	}
	return v
}

// wrongGoroutines says whether the sidecar has many more goroutines than before the stranger came. What is tried
// again and again leaves none.
func (f *strangers) wrongGoroutines(ctx context.Context, s *site) []string {
	now, err := s.all[0].process.Metric(ctx, "go_goroutines")
	most := f.goroutines + slack
	if f.refuses {
		most += refusing * ofEachSocket
	}
	switch {
	case err != nil || now == 0:
		return []string{fmt.Sprintf("the sidecar does not say how many goroutines it has: %v", err)}
	case !f.come:
		f.goroutines = now
	case f.refuses && f.refusals.Load() < refusing*triesOfEach:
		return []string{fmt.Sprintf("plugins were to be registered %d times so far", f.refusals.Load())}
	case now > most:
		return []string{fmt.Sprintf("goroutines leak: %v, want at most %v, before it came %v", now, most, f.goroutines)}
	}
	return nil
}

// wrongView says whether what the containers of the Pod that came later see is shown.
func (f *strangers) wrongView(there found) []string {
	for uid, pod := range there.pods {
		if _, err := os.Stat(filepath.Join(f.view, "pods", string(uid))); f.viewed && pod.Name == laterPod && err != nil {
			return []string{"view: nothing shows what pod " + laterPod + " sees"}
		}
	}
	return nil
}

// wrongHealth says whether the strange Pod shows the health of its device.
func (f *strangers) wrongHealth(there found) []string {
	if !f.showsHealth {
		return nil
	}
	for _, pod := range there.pods {
		if pod.Name != strangePod {
			continue
		}
		for _, container := range pod.Status.ContainerStatuses {
			for _, status := range container.AllocatedResourcesStatus {
				if status.Resources[0].Health != corev1.ResourceHealthStatusUnknown {
					return nil
				}
			}
		}
	}
	return []string{"health: pod " + strangePod + " shows nothing of what its driver reports"}
}

// folder is the folder of the strange node, below which its files are.
func (f *strangers) folder(ctx context.Context, elem ...string) (string, error) {
	folder := filepath.Join(f.plugins, strangeNode)
	return filepath.Join(append([]string{folder}, elem...)...), awaitFile(ctx, filepath.Join(folder, "node"))
}

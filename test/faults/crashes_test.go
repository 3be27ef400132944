package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/test/drivers/file"
)

// crashes are drivers that are down when a Pod ends. Nobody has unprepared its claims
// then, so a kubelet has it stay Terminating until the driver is back.
type crashes struct {
	// real has a driver on sockets in place of a template.
	real bool
	// by is what takes the driver away: a condition of the Node, or its Pod or process.
	by string
	// again has the sidecar start anew while the driver is down.
	again   bool
	plugins string
	all     templates
	plugin  *file.Driver
	// calls are those to unprepare claims.
	calls atomic.Int64
	// over says that the driver is back.
	over bool
}

// What takes drivers away.
const (
	byCrash   = "crash"
	byWipe    = "wipe"
	byItsPod  = "driver Pod"
	byProcess = "process"
)

const (
	crashNode = "crash-node"
	crashPod  = "crash-pod"
	// downTime is how long a driver is down. Without one nothing is to happen, however long.
	downTime = 3 * time.Second
)

func newCrashes(random *rand.Rand) feature {
	f := &crashes{real: random.IntN(2) == 0, again: random.IntN(2) == 0, all: templates{
		"gpu": {name: "gpu", driver: gpuDriver, kinds: []string{"a"}, device: "gpu", count: 2, revision: 1},
	}}
	f.by = pick(random, byCrash, byWipe, byItsPod)
	if f.real {
		f.by = pick(random, byCrash, byProcess)
	}
	return f
}

// String says what takes the driver away.
func (f *crashes) String() string {
	text := "its " + f.by
	if !f.real {
		text += ", of a template"
	}
	if f.again {
		text += ", and a restart"
	}
	return text
}

func (f *crashes) arguments(s *site) []string {
	arguments := []string{"--config", s.timing, "--config-map", namespace + "/" + configMap}
	if f.plugins != "" {
		arguments = append(arguments, "--plugins-dir", f.plugins)
	}
	return arguments
}

// driverPod names the Pod of a driver.
const driverPod = "crash-driver"

// build has a Pod run with a device of the driver.
func (f *crashes) build(ctx context.Context, s *site) (err error) {
	text := f.all.yaml()
	if f.by == byItsPod {
		text = strings.Replace(text, "  devices:\n", "  driverPod: {namespace: "+namespace+", selector: {matchLabels: {app: "+driverPod+"}}}\n  devices:\n", 1)
	}
	if err := persist(ctx, func(ctx context.Context) error {
		return s.replaceConfigMap(ctx, map[string]string{"templates": text})
	}); err != nil {
		return err
	}
	if f.plugins, err = s.makeDir(); err != nil {
		return err
	}
	if err := s.addNode(ctx, crashNode, map[string]string{kindLabel: "a"}); err != nil {
		return err
	}
	if err := s.start(ctx, 0, f.arguments(s)...); err != nil {
		return err
	}
	if err := f.bringBack(ctx, s); err != nil {
		return err
	}
	pod := boundPod(crashPod, crashNode)
	pod.Labels = map[string]string{terminatesLabel: "true"}
	used := device{gpuDriver, crashNode, "gpu-0"}
	if f.real {
		used = device{f.plugin.Name, crashNode, "file-0"}
	}
	return s.allocate(ctx, pod, used)
}

// takeAway takes the driver away.
func (f *crashes) takeAway(ctx context.Context, s *site) error {
	switch f.by {
	case byCrash:
		return s.setPlugin(ctx, corev1.ConditionUnknown, v1alpha1.PluginCrashed)
	case byWipe:
		return s.setPlugin(ctx, corev1.ConditionFalse, v1alpha1.PluginCrashed)
	case byProcess:
		f.plugin.Stop()
		return nil
	}
	return persist(ctx, func(ctx context.Context) error {
		return s.client.CoreV1().Pods(namespace).Delete(ctx, driverPod, atOnce)
	})
}

// bringBack brings the driver back, or has it come first.
func (f *crashes) bringBack(ctx context.Context, s *site) (err error) {
	if f.real && (f.plugin == nil || f.by == byProcess) {
		first := f.plugin == nil
		if f.plugin, err = s.startPlugin(ctx, f.plugins, crashNode, f.intercept); err != nil {
			return err
		}
		if first {
			s.ends = append(s.ends, func() { f.plugin.Stop() })
		}
	}
	switch f.by {
	case byCrash, byWipe:
		return s.setPlugin(ctx, corev1.ConditionTrue, "PluginRegistered")
	case byItsPod:
		pod := boundPod(driverPod, crashNode)
		pod.Spec.ResourceClaims, pod.Spec.Containers[0].Resources = nil, corev1.ResourceRequirements{}
		pod.Labels = map[string]string{"app": driverPod}
		return persist(ctx, func(ctx context.Context) error {
			_, err := s.client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
			return err
		})
	}
	return nil
}

// intercept counts the calls to unprepare claims.
func (f *crashes) intercept(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if path.Base(info.FullMethod) == "NodeUnprepareResources" {
		f.calls.Add(1)
	}
	return handler(ctx, request)
}

// disturb has the Pod end while its driver is down.
func (f *crashes) disturb(ctx context.Context, s *site) error {
	if err := f.takeAway(ctx, s); err != nil {
		return err
	}
	s.ledger.await(ctx, quiet) // the sidecar has seen that
	pods := s.client.CoreV1().Pods(namespace)
	if err := persist(ctx, func(ctx context.Context) error { return pods.Delete(ctx, crashPod, metav1.DeleteOptions{}) }); err != nil {
		return err
	}
	if err := s.finish(ctx, crashPod); err != nil {
		return err
	}
	if f.again {
		if err := s.startAgain(ctx, f.arguments(s)...); err != nil {
			return err
		}
	}
	for started := time.Now(); time.Since(started) < downTime; {
		if wrong := s.wrongStart(ctx, true, crashPod); len(wrong) > 0 {
			return fmt.Errorf("unprepared while the driver is down by %s: %s", f, wrong[0])
		}
		if f.calls.Load() > 0 {
			return fmt.Errorf("the driver was called while it was down by %s", f)
		}
		sleep(ctx, lookAgain)
	}
	f.over = true
	return f.bringBack(ctx, s)
}

func (f *crashes) judge(ctx context.Context, s *site) verdict {
	if !f.over {
		return verdict{wrong: s.wrongStart(ctx, true, crashPod)}
	}
	pod, err := s.pod(ctx, crashPod)
	switch {
	case err != nil:
		return verdict{wrong: []string{err.Error()}}
	case pod != nil:
		return verdict{wrong: []string{fmt.Sprintf("pods: pod %s is still there, and its driver is back after %s", crashPod, f)}}
	case f.real && f.calls.Load() == 0:
		return verdict{final: fmt.Errorf("the Pod is gone, and its driver was not called after %s", f)}
	}
	return verdict{}
}

// setPlugin writes the condition of the Node that tells of its driver, in the place of a Stage.
func (s *site) setPlugin(ctx context.Context, status corev1.ConditionStatus, reason string) error {
	patch := fmt.Appendf(nil, `{"status": {"conditions": [{"type": %q, "status": %q, "reason": %q}]}}`, v1alpha1.PluginRegistered, status, reason)
	return persist(ctx, func(ctx context.Context) error {
		_, err := s.client.CoreV1().Nodes().Patch(ctx, crashNode, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		return err
	})
}

// startPlugin starts a driver on sockets in the folder of a node, once there is one.
func (s *site) startPlugin(ctx context.Context, plugins, node string, intercept grpc.UnaryServerInterceptor, adjust ...func(*file.Options)) (*file.Driver, error) {
	folder := filepath.Join(plugins, node)
	options := file.Options{
		Client: s.client, Name: "file.example.com", Node: node, Devices: 2, Intercept: intercept,
		Registry: filepath.Join(folder, "plugins_registry"), Plugins: filepath.Join(folder, "plugins"), CDI: filepath.Join(folder, "cdi"),
	}
	for _, change := range adjust {
		change(&options)
	}
	if err := await(ctx, "the node has no folder for plugins", func(context.Context) (bool, error) {
		_, err := os.Stat(options.Registry)
		return err == nil, err
	}); err != nil {
		return nil, err
	}
	return file.Start(context.WithoutCancel(ctx), options)
}

package devicemetrics

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"github.com/kwok-dra/kwok-dra/internal/claims/templates"
	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/controller/shard"
	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview"
	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview/injections"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/internal/testing/apitest"
	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
	"github.com/kwok-dra/kwok-dra/internal/testing/runtest"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// gpus has eight GPUs of NVIDIA, a partition of the second one, and two devices of another kind.
const gpus = `---
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: gpus}
spec:
  driver: gpu.nvidia.com
  devices:
  - name: gpu
    count: 8
    attributes:
      uuid: "GPU-{{ .Index }}"
      productName: NVIDIA H100 80GB HBM3
      resource.kubernetes.io/pciBusID: '0000:{{ printf "%02x" (add 0x5a .Index) }}:00.0'
    capacity: {memory: 80Gi}
  - name: gpu-1-mig-1g10gb-19-0
    attributes: {uuid: MIG-0, parentUUID: GPU-1, profile: 1g.10gb, productName: NVIDIA H100 80GB HBM3}
    capacity: {memory: 10Gi}
---
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: others}
spec:
  driver: other.example.com
  devices:
  - {name: tpu, capacity: {memory: 16Gi}}
  - {name: nic}
`

// world is a cluster at noon.
type world struct {
	*apitest.Server
	*Exporter

	t     testing.TB
	store *config.Store
	// taken are the names of the events that took has returned.
	taken sets.Set[string]
	now   time.Time
	rules []inventory.TaintRule
}

func newWorld(t testing.TB, objects ...runtime.Object) *world {
	t.Helper()
	w := &world{Server: apitest.New(objects...), t: t, store: config.NewStore("test"), taken: sets.New[string](), now: claimstest.Noon}
	configtest.Replace(t, w.store, gpus)
	caches := newCaches(t, w.Server)
	w.Exporter = New(Options{
		Config: w.store, Caches: caches, Max: MaxDevices,
		Drivers: func(set *config.Set, node *corev1.Node) containerview.Drivers {
			return &injections.Templates{Driver: templates.New(set, node, templates.Slices{}, nil)}
		},
		TaintRules: func() ([]inventory.TaintRule, string) { return w.rules, "" },
		Now:        func() time.Time { return w.now },
	})
	w.runReporter(caches, nil)
	cache.WaitFor(t.Context(), "", caches.Synced()...)
	return w
}

func newCaches(t testing.TB, server *apitest.Server) *observe.Caches {
	t.Helper()
	managed := &lifecycle.ManagedNodes{}
	require.NoError(t, managed.Complete())
	return observe.New(server, managed)
}

// runReporter runs caches, and a MistakeReporter with them.
func (w *world) runReporter(caches *observe.Caches, owner *shard.Owner) (stop func()) {
	w.t.Helper()
	reporter := NewMistakeReporter(MistakeOptions{Client: w.Server, Caches: caches, Owner: owner})
	return runtest.UntilEnd(runtest.QuietContext(w.t), w.t, caches.Run, func(ctx context.Context) { reporter.Run(ctx, 1) })
}

// scrape gets a path, and returns its samples: the value of each series.
func (w *world) scrape(path string) map[string]string {
	w.t.Helper()
	synctest.Wait()
	code, body := w.get(path)
	require.Equal(w.t, http.StatusOK, code, body)
	problems, err := promlint.New(strings.NewReader(body)).Lint()
	require.NoError(w.t, err)
	for _, problem := range problems {
		require.True(w.t, strings.HasPrefix(problem.Metric, "DCGM_"), problem) // the names are not ours
	}
	samples := map[string]string{}
	for line := range strings.Lines(body) {
		if series, value, ok := strings.Cut(strings.TrimSpace(line), "} "); ok && !strings.HasPrefix(line, "#") {
			samples[series+"}"] = value
		} else if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name != "#" {
			samples[name] = value
		}
	}
	return samples
}

func (w *world) get(path string) (code int, body string) {
	w.t.Helper()
	recorder := httptest.NewRecorder()
	w.Handler().ServeHTTP(recorder, httptest.NewRequestWithContext(w.t.Context(), http.MethodGet, path, nil))
	return recorder.Code, recorder.Body.String()
}

// took are the events since the last time.
func (w *world) took() (all []string) {
	w.t.Helper()
	synctest.Wait()
	events, err := w.CoreV1().Events(metav1.NamespaceAll).List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	for _, event := range events.Items {
		if !w.taken.Has(event.Name) {
			all = append(all, fmt.Sprintf("%s %s %s", event.Type, event.Reason, event.Message))
		}
		w.taken.Insert(event.Name)
	}
	return all
}

var inBubble = runtest.InBubble

// publish is a slice that kwok-dra has made for the node n, with some of the devices tainted, as
// device=key=value:effect.
func publish(driver string, devices []string, taints ...string) *resourcev1.ResourceSlice {
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "n-" + driver, Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue}},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: new("n"), Pool: resourcev1.ResourcePool{Name: "n", Generation: 1, ResourceSliceCount: 1},
		},
	}
	for _, name := range devices {
		device := resourcev1.Device{Name: name}
		for _, text := range taints {
			if of, taint, _ := strings.Cut(text, "="); of == name {
				key, rest, _ := strings.Cut(taint, "=")
				value, effect, _ := strings.Cut(rest, ":")
				device.Taints = append(device.Taints, resourcev1.DeviceTaint{Key: key, Value: value, Effect: resourcev1.DeviceTaintEffect(effect), TimeAdded: new(metav1.Time{Time: claimstest.Noon})})
			}
		}
		slice.Spec.Devices = append(slice.Spec.Devices, device)
	}
	return slice
}

var (
	nvidiaDevices = []string{"gpu-0", "gpu-1", "gpu-1-mig-1g10gb-19-0"}
	otherDevices  = []string{"tpu", "nic"}
)

// running is a Pod that has run since a minute before noon, with annotations.
func running(name string, annotations map[string]string, claims ...string) *corev1.Pod {
	pod := claimstest.NewPod(name, claims...)
	pod.Annotations = annotations
	pod.Status.Phase = corev1.PodRunning
	pod.Status.StartTime = &metav1.Time{Time: claimstest.Noon.Add(-time.Minute)}
	return pod
}

func allocated(name, driver, device string, pods ...*corev1.Pod) *resourcev1.ResourceClaim {
	claim := claimstest.Allocated(name, pods...)
	claimstest.Allocate(claim, claimstest.Device(driver, device))
	return claim
}

// fleet is of nodes with 8 devices, of which one is allocated to a Pod on most of them.
func fleet(nodes, busy int) []runtime.Object {
	var objects []runtime.Object
	for n := range nodes {
		name := "node-" + strconv.Itoa(n)
		objects = append(objects, claimstest.NewNode(name))
		slice := publish("gpu.nvidia.com", nil)
		slice.Name, slice.Spec.NodeName, slice.Spec.Pool.Name = name, &name, name
		for d := range 8 {
			slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: "gpu-" + strconv.Itoa(d), Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("80Gi")}}})
		}
		objects = append(objects, slice)
		if n < busy {
			pod := running("pod-"+strconv.Itoa(n), map[string]string{v1alpha1.UsageGPUAnnotation: "noise(70, 20)"}, "claim-"+strconv.Itoa(n))
			pod.Spec.NodeName = name
			claim := allocated("claim-"+strconv.Itoa(n), "gpu.nvidia.com", "gpu-0", pod)
			claim.Status.Allocation.Devices.Results[0].Pool = name
			claim.Status.Allocation.NodeSelector.NodeSelectorTerms[0].MatchFields[0].Values = []string{name}
			objects = append(objects, pod, claim)
		}
	}
	return objects
}

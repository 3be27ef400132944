package resourceslice

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kwok-dra/kwok-dra/internal/controller/shard"
	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
)

// TestDriverPodAndRestart: a restart writes nothing, and time that is known from the Pod
// goes on.
func TestDriverPodAndRestart(t *testing.T) {
	for name, test := range map[string]struct {
		do    func(w *world)
		after time.Duration
	}{
		"nothing":   {func(*world) {}, 0},
		"not Ready": {func(w *world) { w.setPod("a", unready) }, 0},
		"crashed":   {func(w *world) { w.setPod("a", crash); time.Sleep(20 * time.Second) }, 10 * time.Second},
		"gone while it was down": {func(w *world) {
			w.stop()
			w.removePod("a")
		}, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := withDriverPod(t)
				time.Sleep(time.Until(now().Add(time.Second)))
				test.do(w)
				w.stop()
				w.start()
				if test.after == 0 {
					w.wrote("")
					return
				}
				time.Sleep(test.after - time.Millisecond)
				w.writes("")
				time.Sleep(time.Millisecond)
				w.wrote("delete 1")
			})
		})
	}
}

// TestLateDriverPods: slices stay where only the cache has no Pod.
func TestLateDriverPods(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := withDriverPod(t)
		w.Mu.Lock()
		w.Lags["pods"] = 5 * time.Minute
		w.Mu.Unlock()
		w.stop()
		w.removePod("a")
		w.start() // the watch begins without the Pod
		b := driverPod("b", "n", "d1")
		run(b)
		w.addPod(b)
		w.wrote("")
	})
}

// TestDriverPodsRefused: nothing goes as long as the API server does not say that the Pod is
// gone, also not after a restart.
func TestDriverPodsRefused(t *testing.T) {
	for name, restart := range map[string]bool{"running": false, "restarted": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := withDriverPod(t)
				listed := w.refuseLists()
				w.removePod("a")
				if restart {
					w.stop()
					w.start()
				}
				time.Sleep(10 * time.Minute)
				w.TakeCalls(isList)
				w.writes("")
				listed()
				time.Sleep(2 * time.Minute)
				w.TakeCalls(isList)
				w.writes("delete 1")
			})
		})
	}
}

// TestDriverPodsOfOneTemplateRefused: a driver has two templates, and only the Pods of one
// are known after a restart.
func TestDriverPodsOfOneTemplateRefused(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const second = `---
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: second}
spec:
  driver: d1
  driverPod: {namespace: drivers, selector: {matchLabels: {app: driver}}}
  devices: [{name: nic}]
`
		w := withDriverPod(t)
		configtest.Replace(t, w.store, chart+second)
		w.wrote("patch 1")
		w.stop()
		w.Refuse(func(call string) error {
			if call == "list pods in drivers" {
				return internalError(call)
			}
			return nil
		})
		w.nameLists()
		w.start()
		time.Sleep(time.Hour)
		w.TakeCalls(isList)
		w.writes("")
		w.Refuse(nil)
		time.Sleep(time.Minute)
		w.TakeCalls(isList)
		w.wrote("")
	})
}

// TestDriverPodAndFailover: a replica that stands by counts the 30 s too.
func TestDriverPodAndFailover(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := withDriverPod(t)
		w.stop()
		w.owner = shard.New(shard.Options{Mode: shard.Leader, Client: fake.NewClientset(), Host: "b", Namespace: "kube-system", Name: "kwok-dra"})
		w.start()
		w.removePod("a")
		time.Sleep(20 * time.Second)
		w.writes("")
		ctx, cancel := context.WithCancel(t.Context())
		var leading sync.WaitGroup
		leading.Go(func() { w.owner.Run(ctx) })
		defer leading.Wait()
		defer cancel()
		time.Sleep(9 * time.Second)
		require.True(t, w.owner.Leads())
		w.writes("")
		time.Sleep(time.Second)
		w.writes("delete 1")
	})
}

func isList(call string) bool { return strings.HasPrefix(call, "list pods") }

// nameLists has lists of driver Pods be calls that can be refused.
func (w *world) nameLists() {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	named := w.Name
	w.Name = func(action clienttesting.Action) string {
		if _, ok := action.(clienttesting.ListActionImpl); ok && action.GetResource().Resource == "pods" {
			return "list pods in " + action.GetNamespace()
		}
		return named(action)
	}
}

// refuseLists has the API server refuse to list Pods, until it is told to list them.
func (w *world) refuseLists() (list func()) {
	w.nameLists()
	w.Refuse(func(call string) error {
		if isList(call) {
			return internalError(call)
		}
		return nil
	})
	return func() { w.Refuse(nil) }
}

package claims

import (
	goruntime "runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
)

// awaitCached waits until the cache has that version of a claim, or none where it is empty. It takes no time of the bubble's: the
// caller may be in a call, with locks.
func (w *world) awaitCached(name, version string) {
	for {
		cached := w.controller.observer.Caches.Claims.Observed(types.NamespacedName{Namespace: "default", Name: name})
		if cached == nil && version == "" || cached != nil && cached.ResourceVersion == version {
			return
		}
		goruntime.Gosched()
	}
}

// TestTakenBackMeanwhile: a Pod is not ready if one of its claims is taken back, or allocated otherwise, after it was looked at.
func TestTakenBackMeanwhile(t *testing.T) {
	for name, test := range map[string]struct {
		during  string
		change  func(claim *resourcev1.ResourceClaim) // nil deletes it
		failure string
	}{
		"while the Pod is told to wait": {"waiting p", func(claim *resourcev1.ResourceClaim) {
			claim.Status.Allocation, claim.Status.ReservedFor = nil, nil
		}, "pod p (uid-of-p) is not allowed to use ResourceClaim a (uid-of-a)"},
		"while another claim is prepared": {"prepare b", func(claim *resourcev1.ResourceClaim) {
			claim.Status.Allocation, claim.Status.Devices = nil, nil
		}, "ResourceClaim a: not allocated"},
		"deleted": {"prepare b", nil, `fetch ResourceClaim a: resourceclaims.resource.k8s.io "a" not found`},
		"unreserved": {"prepare b", func(claim *resourcev1.ResourceClaim) {
			claim.Status.ReservedFor = nil
		}, "pod p (uid-of-p) is not allowed to use ResourceClaim a (uid-of-a)"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				pod := newPod("p", "a", "b")
				w := idleWorld(t, template("d", "")+configuration(faithful), newNode("n"), pod, allocated("a", pod), allocated("b", pod))
				during := test.during
				w.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
					if operation(action) == during {
						during = ""
						version := ""
						if test.change == nil {
							w.Remove(w.claim("a"))
						} else {
							w.editClaim("a", test.change)
							version = w.claim("a").ResourceVersion
						}
						w.awaitCached("a", version)
					}
					return false, nil, nil
				})
				w.start()
				time.Sleep(10 * time.Second)
				synctest.Wait()
				require.False(t, w.ready("p"))
				w.failures(test.failure)
				_, known := w.controller.observer.states.claims.Load(types.UID("uid-of-a"))
				require.False(t, known && test.change == nil, "what is remembered ends with the claim")
			})
		})
	}
}

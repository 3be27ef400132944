package claims

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/internal/controller/loop"
)

func invalid(texts ...string) error {
	var errs field.ErrorList
	for _, text := range texts {
		errs = append(errs, field.Forbidden(field.NewPath("status"), text))
	}
	return apierrors.NewInvalid(resourcev1.SchemeGroupVersion.WithKind("ResourceClaim").GroupKind(), "x", errs)
}

// TestAPIErrorsAreRetried with a backoff, and only after many of them an event
// tells of it.
func TestAPIErrorsAreRetried(t *testing.T) {
	for name, err := range map[string]error{
		"500":      apierrors.NewInternalError(errBroken),
		"429":      apierrors.NewTooManyRequests("slow down", 1),
		"422":      invalid(),
		"504":      apierrors.NewServerTimeout(resourcev1.Resource("resourceclaims"), "patch", 1),
		"no reply": errBroken,
	} {
		for _, call := range []string{"prepare c", "ready p", "get resourceclaims c"} {
			t.Run(name+", "+call, func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					pod := newPod("p", "c")
					w := idleWorld(t, template("d", ""), newNode("n"))
					if strings.HasPrefix(call, "get") {
						w.Lags["resourceclaims"] = time.Hour // so that the claim has to be read
					}
					w.Refuse(failing(loop.FailuresBeforeEvent, call, err))
					w.start()
					w.Add(allocated("c", pod))
					w.Add(pod)
					time.Sleep(10 * time.Second)
					require.True(t, w.ready("p"))
					w.failures()
					w.wrote(strings.Join(retried(call), ", "))
				})
			})
		}
	}
}

// retried are the writes of a Pod whose call fails as long as there is patience.
func retried(call string) []string {
	var writes []string
	switch call {
	case "prepare c":
		for range loop.FailuresBeforeEvent {
			writes = append(writes, call)
		}
		return append(writes, "prepare c", "ready p")
	case "ready p":
		writes = append(writes, "prepare c")
		for range loop.FailuresBeforeEvent {
			writes = append(writes, call)
		}
		return append(writes, "ready p")
	}
	return []string{"prepare c", "ready p"}
}

func TestEventAfterManyAPIErrors(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := newPod("p", "c")
		w := idleWorld(t, template("d", ""), newNode("n"), pod, allocated("c", pod))
		w.Refuse(failing(loop.FailuresBeforeEvent+1, "prepare c", apierrors.NewInternalError(errBroken)))
		w.start()
		time.Sleep(10 * time.Second)
		require.True(t, w.ready("p"))
		w.failures("prepare ResourceClaim default/c: Internal error occurred: connection refused")
	})
}

// TestLostRaces are nothing to tell anyone about.
func TestLostRaces(t *testing.T) {
	for name, err := range map[string]error{
		"409": apierrors.NewConflict(resourcev1.Resource("resourceclaims"), "c", errBroken),
		"404": apierrors.NewNotFound(resourcev1.Resource("resourceclaims"), "c"),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				pod := newPod("p", "c")
				w := idleWorld(t, template("d", ""), newNode("n"), pod, allocated("c", pod))
				w.Refuse(failing(2*loop.FailuresBeforeEvent, "prepare c", err))
				w.start()
				time.Sleep(2 * time.Minute)
				require.True(t, w.ready("p"))
				w.failures()
			})
		})
	}
}

// TestForbidden: more of the same does not help, so an event says so at once.
func TestForbidden(t *testing.T) {
	for name, err := range map[string]error{
		"403": apierrors.NewForbidden(resourcev1.Resource("resourceclaims"), "c", errors.New("no rule")),
		"422": invalid("changing status.devices requires resource=resourceclaims/driver"),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				pod := newPod("p", "c")
				w := idleWorld(t, template("d", ""), newNode("n"), pod, allocated("c", pod))
				w.Refuse(failing(1, "prepare c", err))
				w.start()
				w.failures("prepare ResourceClaim default/c: " + err.Error())
				time.Sleep(time.Second)
				require.True(t, w.ready("p"))
			})
		})
	}
}

// TestReplacedClaim: the UID in the write keeps the entries from a claim that has
// taken the name of the one that was looked at.
func TestReplacedClaim(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := newPod("p", "c")
		w := newWorld(t, template("d", ""), newNode("n"), allocated("c", pod))
		w.Lags["resourceclaims"] = time.Minute
		again := allocated("c", pod)
		again.UID = "another"
		again.Status.ReservedFor = nil
		w.Remove(allocated("c"))
		w.Add(again)
		w.Add(pod)
		w.wrote("prepare c")
		require.Empty(t, w.shown("c"))
		require.False(t, w.ready("p"))
	})
}

package sidecar

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/why"
)

// TestRealDrivers: of a driver without templates the answer says whether it is registered, where
// somebody knows.
func TestRealDrivers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		registered bool
		err        error
		reason     string
		details    []string
	}{
		"registered": {registered: true, reason: "not prepared yet: c", details: []string{
			"the real driver gpu.example.com is registered with node n, and kwok-dra asks it to prepare the claims",
			"nothing keeps kwok-dra from preparing them now: does it run, and act for node n?",
		}},
		"not registered": {
			reason:  "the real driver gpu.example.com is not registered with node n: start its plugin with the folder of the node in kwok-dra's --plugins-dir",
			details: []string{"no template names driver gpu.example.com, so it has to be a real one"},
		},
		"not known": {err: errors.New("no folder"), reason: "not prepared yet: c", details: []string{
			"whether driver gpu.example.com is registered with node n is not known: no folder",
			"nothing keeps kwok-dra from preparing them now: does it run, and act for node n?",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			s.configuration = strings.ReplaceAll(s.configuration, "driver: gpu.example.com", "driver: other.example.com")
			s.bind()
			known, added, _ := s.cluster(t)
			added.Registered = func(_ context.Context, node *corev1.Node, asked string) (bool, error) {
				require.Equal(t, []string{"n", driver}, []string{node.Name, asked})
				return test.registered, test.err
			}
			answer := known.Answer(t.Context(), s.pod)
			require.Equal(t, why.Preparing, answer.State)
			require.Equal(t, test.reason, answer.Reason)
			require.Equal(t, test.details, answer.Details)
		})
	}
}

// TestRealDriverIsAskedLast: a claim that is not reserved is prepared by no driver, whether or not it is
// registered.
func TestRealDriverIsAskedLast(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.configuration = strings.ReplaceAll(s.configuration, "driver: gpu.example.com", "driver: other.example.com")
	s.bind()
	s.claim.Status.ReservedFor = nil
	known, added, _ := s.cluster(t)
	added.Registered = func(context.Context, *corev1.Node, string) (bool, error) { return false, nil }
	require.Equal(t, "claim c is not reserved for the Pod", known.Answer(t.Context(), s.pod).Reason)
}

// TestFailedOnce says when, and counts nothing.
func TestFailedOnce(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.bind()
	s.fail("disk is full")
	known, _, _ := s.cluster(t)
	known.Failures[s.pod.UID].Count = 1
	require.Contains(t, known.Answer(t.Context(), s.pod).Details, "it has failed once, at 2026-01-02T03:05:09Z")
}

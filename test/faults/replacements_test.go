package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// replacements are Pods and claims that others replace under their names while the sidecar
// sees nothing. Since its watches cannot go on, it lists anew, and sees one change of an
// object where there are two objects.
type replacements struct {
	all templates
	// by is what becomes of each Pod.
	by []replacement
}

// replacement is what becomes of a Pod and its claim.
type replacement int

const (
	untouched replacement = iota
	// withoutClaims has another Pod that has none take its place.
	withoutClaims
	// otherClaim has another Pod with another claim take its place.
	otherClaim
	// anew has both be made anew.
	anew
	// heldWithoutClaims has one that waits be replaced by one that has no claims.
	heldWithoutClaims
	replacementCount
)

const replacedNode = "replacements-node"

func newReplacements(random *rand.Rand) feature {
	f := &replacements{all: templates{"gpu": {name: "gpu", driver: gpuDriver, kinds: []string{"a"}, device: "gpu", count: 30, revision: 1}}}
	for range 6 {
		f.by = append(f.by, replacement(random.IntN(int(replacementCount))))
	}
	return f
}

// String says what becomes of the Pods.
func (f *replacements) String() string { return fmt.Sprint(f.by) }

func (f *replacements) pod(i int) string { return fmt.Sprint("replaced-", i) }

func (f *replacements) build(ctx context.Context, s *site) error {
	if err := s.configure(ctx, f.all); err != nil {
		return err
	}
	if err := s.addNode(ctx, replacedNode, map[string]string{kindLabel: "a"}); err != nil {
		return err
	}
	if err := s.start(ctx, 0, "--config", s.timing, "--config-map", namespace+"/"+configMap); err != nil {
		return err
	}
	for i, by := range f.by {
		pod := boundPod(f.pod(i), replacedNode)
		if by == heldWithoutClaims {
			pod.Labels = map[string]string{holdLabel: "true"}
		}
		if err := f.give(ctx, s, pod, i); err != nil {
			return err
		}
	}
	return nil
}

func (f *replacements) give(ctx context.Context, s *site, pod *corev1.Pod, number int) error {
	return s.allocate(ctx, pod, device{gpuDriver, replacedNode, fmt.Sprint("gpu-", number)})
}

// disturb replaces Pods while nothing gets through, and has no watch go on until the
// sidecar has seen a Pod that came after them.
func (f *replacements) disturb(ctx context.Context, s *site) error {
	err := s.all[0].proxy.without(func() error {
		for i := range f.by {
			if err := f.replace(ctx, s, i); err != nil {
				return fmt.Errorf("replace %s: %w", f.pod(i), err)
			}
		}
		const last = "replaced-last"
		if err := f.give(ctx, s, boundPod(last, replacedNode), 29); err != nil {
			return err
		}
		old := s.newSchedule(0)
		old.phases, old.lag.resource = []phase{{length: stuck}}, ""
		old.phases[0].chances[expired] = 1
		s.disturb([]*schedule{old})
		return nil
	})
	if err != nil {
		return err
	}
	defer s.disturb(nil)
	return await(ctx, "the sidecar does not see a Pod that came last", func(ctx context.Context) (bool, error) {
		return len(s.wrongStart(ctx, true, "replaced-last")) == 0, nil
	})
}

func (f *replacements) replace(ctx context.Context, s *site, i int) error {
	name, by := f.pod(i), f.by[i]
	if by == untouched {
		return nil
	}
	pods, claims := s.client.CoreV1().Pods(namespace), s.client.ResourceV1().ResourceClaims(namespace)
	if err := persist(ctx, func(ctx context.Context) error { return pods.Delete(ctx, name, atOnce) }); err != nil {
		return err
	}
	if by == anew {
		if err := persist(ctx, func(ctx context.Context) error { return claims.Delete(ctx, name, metav1.DeleteOptions{}) }); err != nil {
			return err
		}
	}
	if err := await(ctx, "a Pod or a claim does not go", func(ctx context.Context) (bool, error) {
		there, err := s.list(ctx)
		left := by == anew && slices.ContainsFunc(there.claims, func(claim resourcev1.ResourceClaim) bool { return claim.Name == name })
		for _, pod := range there.pods {
			left = left || pod.Name == name
		}
		return !left, err
	}); err != nil {
		return err
	}
	pod := boundPod(name, replacedNode)
	switch by {
	case otherClaim:
		pod.Spec.ResourceClaims[0].ResourceClaimName = new(name + "-other")
		return f.give(ctx, s, pod, 10+i)
	case anew:
		return f.give(ctx, s, pod, i)
	case withoutClaims, heldWithoutClaims:
		pod.Spec.ResourceClaims, pod.Spec.Containers[0].Resources = nil, corev1.ResourceRequirements{}
	}
	return persist(ctx, func(ctx context.Context) error {
		_, err := pods.Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
}

// judge holds what the counters of the sidecar say against the Pods.
func (f *replacements) judge(ctx context.Context, s *site) verdict {
	v := s.judgeState(ctx, f.all)
	there, err := s.list(ctx)
	if err != nil {
		return verdict{wrong: []string{err.Error()}}
	}
	prepared, waiting := 0.0, 0.0
	for _, pod := range there.pods {
		switch {
		case len(pod.Spec.ResourceClaims) == 0:
		case startable(pod):
			prepared++
		default:
			waiting++
		}
	}
	for name, want := range map[string]float64{"kwok_dra_prepared_claims": prepared, "kwok_dra_waiting_pods": waiting} {
		got, err := s.all[0].process.Metric(ctx, name)
		if err != nil || got != want {
			v.wrong = append(v.wrong, fmt.Sprintf("counters: %s is %v, want %v: %v", name, got, want, err))
		}
	}
	return v
}

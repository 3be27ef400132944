package slices

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	resourceclient "k8s.io/client-go/kubernetes/typed/resource/v1"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
)

// askAgain is how often kwok-dra checks whether the API server has been replaced, or
// keeps what it dropped.
const askAgain = 30 * time.Second

// serverFields knows which gated fields the API server keeps. The version does
// not show it, so it asks with a dry run, once for each field that is used.
type serverFields struct {
	client  resourceclient.ResourceSliceInterface
	version discovery.ServerVersionInterfaceWithContext
	// report is called once for each source and field that is dropped. The source
	// is the name of a template, or of the annotation with device taints.
	report func(ctx context.Context, node *corev1.Node, source string, field *gatedField)
	// doubts has room for one, so that a sender never waits.
	doubts chan struct{}

	mu sync.Mutex
	// kept holds the answers by name of the field.
	kept     map[string]bool
	layout   devices.Layout
	reported map[[2]string]bool
}

// fit makes the pools as the API server accepts them: without the fields that it
// drops, and without the pools that would be wrong without a field. It returns how
// to lay them out.
func (s *serverFields) fit(ctx context.Context, node *corev1.Node, pools []devices.Pool) ([]devices.Pool, devices.Layout, error) {
	var fitting []devices.Pool
	for i := range pools {
		pool := pools[i]
		fits, err := s.fitPool(ctx, node, &pool)
		if err != nil {
			return nil, 0, err
		}
		if fits {
			fitting = append(fitting, pool)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return fitting, s.layout, nil
}

func (s *serverFields) fitPool(ctx context.Context, node *corev1.Node, pool *devices.Pool) (bool, error) {
	fits := true
	for i := range gatedFields {
		field := &gatedFields[i]
		if !field.used(pool) {
			continue
		}
		kept, err := s.keeps(ctx, field)
		if err != nil {
			return false, err
		}
		if kept {
			continue
		}
		s.reportOnce(ctx, node, pool, field)
		if field.without != "" {
			fits = false
			continue
		}
		field.clear(pool)
	}
	return fits, nil
}

// keeps reports whether the server keeps the field. The first caller asks; others
// wait for the answer.
func (s *serverFields) keeps(ctx context.Context, field *gatedField) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kept, known := s.kept[field.name]; known {
		return kept, nil
	}
	kept, err := s.ask(ctx, field)
	if err == nil {
		s.kept[field.name] = kept
	}
	return kept, err
}

// ask asks the API server with a dry run. A field whose gate is off is dropped,
// or what is left without it is refused.
func (s *serverFields) ask(ctx context.Context, field *gatedField) (bool, error) {
	spec := field.probe()
	kept, refused, err := s.try(ctx, field, spec)
	if field.name != counters || err != nil || !refused {
		if field.name == counters {
			s.layout = devices.CountersApart
		}
		return kept, err
	}
	// Kubernetes 1.34 wants the counter set in the slice of the devices.
	spec.SharedCounters = []resourcev1.CounterSet{{Name: probeName, Counters: spec.Devices[0].ConsumesCounters[0].Counters}}
	kept, _, err = s.try(ctx, field, spec)
	s.layout = devices.CountersWithDevices
	return kept, err
}

func (s *serverFields) try(ctx context.Context, field *gatedField, spec resourcev1.ResourceSliceSpec) (kept, refused bool, err error) {
	spec.Driver = probeName + "." + v1alpha1.GroupName
	spec.Pool = resourcev1.ResourcePool{Name: probeName, Generation: 1, ResourceSliceCount: 1}
	probe := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{GenerateName: v1alpha1.ManagedByValue + "-probe-"}, Spec: spec}
	stored, err := s.client.Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case apierrors.IsInvalid(err):
		return false, true, nil
	case err != nil:
		return false, false, fmt.Errorf("ask the API server whether it keeps %s: %w", field.name, err)
	}
	return field.kept(&stored.Spec), false, nil
}

func (s *serverFields) reportOnce(ctx context.Context, node *corev1.Node, pool *devices.Pool, field *gatedField) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, source := range sources(pool, field) {
		key := [2]string{source, field.name}
		if s.reported[key] {
			continue
		}
		s.reported[key] = true
		s.report(ctx, node, source, field)
	}
}

// sources are what the pool has the field from. What no template has is from the
// annotation.
func sources(pool *devices.Pool, field *gatedField) []string {
	var names []string
	for _, t := range pool.Templates {
		if t.Uses(field.used) {
			names = append(names, t.Name)
		}
	}
	if len(names) == 0 {
		names = []string{v1alpha1.DeviceTaintsAnnotation}
	}
	return names
}

// recant takes back what was reported of templates that are gone, or do not use the
// field any more.
func (s *serverFields) recant(set *config.Set, gone func(template, field string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for reported := range s.reported {
		template, name := reported[0], reported[1]
		i := slices.IndexFunc(gatedFields, func(f gatedField) bool { return f.name == name })
		uses := set != nil && slices.ContainsFunc(set.Templates, func(t *devices.Template) bool {
			return t.Name == template && t.Uses(gatedFields[i].used)
		})
		if !uses && template != v1alpha1.DeviceTaintsAnnotation {
			delete(s.reported, reported)
			gone(template, name)
		}
	}
}

// forget makes kwok-dra ask the API server again.
func (s *serverFields) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept, s.reported = map[string]bool{}, map[[2]string]bool{}
}

// doubt has kwok-dra ask again soon, where a write fails as it would if a field were
// dropped that was kept before: a feature gate may have been turned off. What is
// stored stays as it is then, so that nothing is wrong before the next write.
func (s *serverFields) doubt(err error) {
	if _, otherwise := errors.AsType[storedOtherwise](err); !otherwise && !apierrors.IsInvalid(err) {
		return
	}
	select {
	case s.doubts <- struct{}{}:
	default:
	}
}

// watch calls changed when the API server has been replaced, keeps what it dropped,
// or drops what it kept. It returns when ctx ends.
func (s *serverFields) watch(ctx context.Context, changed func()) {
	version := s.serverVersion(ctx, "")
	ticker := time.NewTicker(askAgain)
	defer ticker.Stop()
	for {
		doubted := false
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-s.doubts:
			doubted = true
		}
		now := s.serverVersion(ctx, version)
		if now == version && !s.answersOtherwise(ctx, doubted) {
			continue
		}
		version = now
		s.forget()
		changed()
	}
}

// serverVersion returns what it was given where the API server does not answer.
func (s *serverFields) serverVersion(ctx context.Context, known string) string {
	info, err := s.version.ServerVersionWithContext(ctx)
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Cannot tell the API server's version", "err", err)
		return known
	}
	return info.String()
}

// answersOtherwise asks again for the fields that were dropped, and in doubt for
// those that were kept as well.
func (s *serverFields) answersOtherwise(ctx context.Context, doubted bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(gatedFields, func(field gatedField) bool {
		kept, asked := s.kept[field.name]
		if !asked || kept && !doubted {
			return false
		}
		now, err := s.ask(ctx, &field)
		return err == nil && now != kept
	})
}

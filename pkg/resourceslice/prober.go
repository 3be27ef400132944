package resourceslice

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	resourceclient "k8s.io/client-go/kubernetes/typed/resource/v1"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/resourceslice/features"
)

// probeLimit bounds a probe, for which all workers wait.
const probeLimit = 10 * time.Second

// probeInterval is how often kwok-dra checks whether the API server has been replaced,
// or keeps what it dropped.
const probeInterval = 30 * time.Second

// Prober finds out which fields the API server keeps. The version does not show it, so
// it probes with a dry run, once for each field that is used.
type Prober struct {
	client  resourceclient.ResourceSliceInterface
	version discovery.ServerVersionInterfaceWithContext
	// doubts has room for one, so that a sender never waits.
	doubts chan struct{}

	mu sync.Mutex
	// kept are the answers.
	kept   map[*features.Field]bool
	layout devices.Layout
}

// NewProber makes a Prober for the API server of a client.
func NewProber(client kubernetes.Interface) *Prober {
	return &Prober{
		client:  client.ResourceV1().ResourceSlices(),
		version: client.Discovery(),
		doubts:  make(chan struct{}, 1),
		kept:    map[*features.Field]bool{},
	}
}

// Keeps implements features.Server. The first caller probes; others wait for the
// answer.
func (p *Prober) Keeps(ctx context.Context, field *features.Field) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if kept, known := p.kept[field]; known {
		return kept, nil
	}
	kept, err := p.probe(ctx, field)
	if err == nil {
		p.kept[field] = kept
	}
	return kept, err
}

// Layout implements features.Server.
func (p *Prober) Layout() devices.Layout {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.layout
}

// probe asks the API server. A field whose gate is off is dropped, or what is left
// without it is refused.
func (p *Prober) probe(ctx context.Context, field *features.Field) (bool, error) {
	spec := field.Probe()
	kept, refused, err := p.dryRun(ctx, field, spec)
	if err != nil || field.Name != features.Counters {
		return kept, err
	}
	p.layout = devices.CountersApart
	if refused {
		// Kubernetes 1.34 wants the counter set in the slice of the devices.
		consumed := spec.Devices[0].ConsumesCounters[0]
		spec.SharedCounters = []resourcev1.CounterSet{{Name: consumed.CounterSet, Counters: consumed.Counters}}
		kept, _, err = p.dryRun(ctx, field, spec)
		p.layout = devices.CountersWithDevices
	}
	return kept, err
}

func (p *Prober) dryRun(ctx context.Context, field *features.Field, spec resourcev1.ResourceSliceSpec) (kept, refused bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	probe := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{GenerateName: v1alpha1.ManagedByValue + "-probe-"}, Spec: spec}
	stored, err := p.client.Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case apierrors.IsInvalid(err):
		return false, true, nil
	case err != nil:
		return false, false, fmt.Errorf("ask the API server whether it keeps %s: %w", field.Name, err)
	}
	return field.Kept(&stored.Spec), false, nil
}

// doubt has the Prober probe again soon where a write fails as it would if a field
// were dropped that was kept before: a feature gate may have been turned off. What is
// stored stays as it is then, so that nothing is wrong before the next write.
func (p *Prober) doubt(err error) {
	if !errors.Is(err, errStored) && !apierrors.IsInvalid(err) {
		return
	}
	select {
	case p.doubts <- struct{}{}:
	default:
	}
}

// watch calls changed when the API server has been replaced, keeps what it dropped,
// or drops what it kept. It returns when ctx ends.
func (p *Prober) watch(ctx context.Context, changed func()) {
	version := p.serverVersion(ctx, "")
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	for {
		doubted := false
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-p.doubts:
			doubted = true
		}
		now := p.serverVersion(ctx, version)
		if p.forgetOutdated(ctx, now != version, doubted) {
			changed()
		}
		version = now
	}
}

// serverVersion returns what it was given where the API server does not answer.
func (p *Prober) serverVersion(ctx context.Context, known string) string {
	info, err := p.version.ServerVersionWithContext(ctx)
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Cannot tell the API server's version", "err", err)
		return known
	}
	return info.String()
}

// forgetOutdated makes the Prober probe again for all fields, if the API server has been
// replaced or one of its answers is another now: about a field that was dropped, or in
// doubt also one that was kept. It reports whether it did.
func (p *Prober) forgetOutdated(ctx context.Context, replaced, doubted bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	outdated := replaced
	for field, kept := range p.kept {
		if !outdated && (!kept || doubted) {
			now, err := p.probe(ctx, field)
			outdated = err == nil && now != kept
		}
	}
	if outdated {
		clear(p.kept)
	}
	return outdated
}

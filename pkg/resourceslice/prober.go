package resourceslice

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
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

// probeLimit bounds a probe, for which workers wait that need the field.
const probeLimit = 10 * time.Second

// probeInterval is how often kwok-dra checks whether the API server has been replaced,
// or keeps what it dropped.
const probeInterval = 30 * time.Second

// retryProbe is how soon a field is probed again that could not be.
const retryProbe = 5 * time.Second

// doubtLifetime is how long a doubt that was not confirmed is not raised again.
const doubtLifetime = 10 * time.Minute

// Prober finds out which fields the API server keeps. The version does not show it, so
// it probes with a dry run, once for each field that is used. Workers that need a field
// wait for its own probe only, and watch alone takes answers back.
type Prober struct {
	client  resourceclient.ResourceSliceInterface
	version discovery.ServerVersionInterfaceWithContext
	// doubts has room for one, so that a sender never waits.
	doubts chan struct{}

	mu       sync.Mutex
	verdicts map[*features.Field]*verdict
	layout   devices.Layout
	// doubted has when each doubt was last raised.
	doubted map[string]time.Time
}

// verdict is what is known of a field once done is closed.
type verdict struct {
	done chan struct{}
	answer
	err error
	at  time.Time
}

// answer is that of the API server: whether it keeps a field, and for counters how it
// wants them divided.
type answer struct {
	kept   bool
	layout devices.Layout
}

// isSettled reports whether the field was probed. The caller holds the lock.
func (v *verdict) isSettled() bool {
	select {
	case <-v.done:
		return v.err == nil
	default:
		return false
	}
}

// isDue reports whether the field could not be probed, a while ago.
func (v *verdict) isDue() bool {
	select {
	case <-v.done:
		return v.err != nil && time.Since(v.at) >= retryProbe
	default:
		return false
	}
}

// NewProber makes a Prober for the API server of a client.
func NewProber(client kubernetes.Interface) *Prober {
	return &Prober{
		client:   client.ResourceV1().ResourceSlices(),
		version:  client.Discovery(),
		doubts:   make(chan struct{}, 1),
		verdicts: map[*features.Field]*verdict{},
		doubted:  map[string]time.Time{},
	}
}

// Keeps implements features.Server. The first caller probes; others that need the field
// wait for the answer.
func (p *Prober) Keeps(ctx context.Context, field *features.Field) (bool, error) {
	p.mu.Lock()
	v := p.verdicts[field]
	if v != nil && !v.isDue() {
		p.mu.Unlock()
		select {
		case <-v.done:
			return v.kept, v.err
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	v = &verdict{done: make(chan struct{})}
	p.verdicts[field] = v
	p.mu.Unlock()
	found, err := p.probe(ctx, field)
	p.mu.Lock()
	defer p.mu.Unlock()
	if v.answer, v.err, v.at = found, err, time.Now(); err == nil && field.Name == features.Counters && p.verdicts[field] == v {
		p.layout = found.layout
	}
	close(v.done)
	return v.kept, v.err
}

// Layout implements features.Server.
func (p *Prober) Layout() devices.Layout {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.layout
}

// probe asks the API server. A field whose gate is off is dropped, or what is left
// without it is refused.
func (p *Prober) probe(ctx context.Context, field *features.Field) (answer, error) {
	spec := field.Probe()
	kept, refused, err := p.dryRun(ctx, field, spec)
	if err != nil || field.Name != features.Counters {
		return answer{kept: kept}, err
	}
	if !refused {
		return answer{kept, devices.CountersApart}, nil
	}
	// Kubernetes 1.34 wants the counter set in the slice of the devices.
	consumed := spec.Devices[0].ConsumesCounters[0]
	spec.SharedCounters = []resourcev1.CounterSet{{Name: consumed.CounterSet, Counters: consumed.Counters}}
	kept, _, err = p.dryRun(ctx, field, spec)
	return answer{kept, devices.CountersWithDevices}, err
}

func (p *Prober) dryRun(ctx context.Context, field *features.Field, spec resourcev1.ResourceSliceSpec) (kept, refused bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	probe := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{GenerateName: v1alpha1.ManagedByValue + "-probe-"}, Spec: spec}
	stored, err := p.client.Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case len(refusedFields(err)) > 0:
		return false, true, nil
	case err != nil:
		return false, false, fmt.Errorf("ask the API server whether it keeps %s: %w", field.Name, err)
	}
	return field.Kept(&stored.Spec), false, nil
}

// refusedFields are the fields of the spec that the API server's validation refuses,
// without indices and keys. An admission policy that refuses a slice names none.
func refusedFields(err error) []string {
	status := apierrors.APIStatus(nil)
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		if name := indices.ReplaceAllString(cause.Field, ""); name == "spec" || strings.HasPrefix(name, "spec.") {
			fields = append(fields, name)
		}
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

var indices = regexp.MustCompile(`\[[^\]]*\]`)

// doubt has the Prober probe again soon where a write fails as it would if a field
// were dropped that was kept before: a feature gate may have been turned off. What is
// stored stays as it is then, so that nothing is wrong before the next write. A doubt
// that was not confirmed is not raised again for a while: something else refuses.
func (p *Prober) doubt(err error) {
	reason := strings.Join(refusedFields(err), ",")
	if errors.Is(err, errStored) {
		reason = errStored.Error()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if raised, known := p.doubted[reason]; reason == "" || known && time.Since(raised) < doubtLifetime {
		return
	}
	p.doubted[reason] = time.Now()
	select {
	case p.doubts <- struct{}{}:
	default:
	}
}

// watch calls changed when the API server has been replaced, keeps what it dropped,
// or drops what it kept. It returns when ctx ends. It probes because of a doubt at once,
// and because of others not before the next tick.
func (p *Prober) watch(ctx context.Context, changed func()) {
	version := p.serverVersion(ctx, "")
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	doubts := p.doubts
	for {
		doubted := false
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			doubts = p.doubts
		case <-doubts:
			doubted, doubts = true, nil
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
	settled := map[*features.Field]answer{}
	p.mu.Lock()
	for field, v := range p.verdicts {
		if v.isSettled() {
			settled[field] = v.answer
		}
	}
	p.mu.Unlock()
	outdated := replaced
	for field, known := range settled {
		if !outdated && (!known.kept || doubted) {
			now, err := p.probe(ctx, field)
			outdated = err == nil && now != known
		}
	}
	if outdated {
		p.mu.Lock()
		clear(p.verdicts)
		clear(p.doubted)
		p.mu.Unlock()
	}
	return outdated
}

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

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/features"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

const (
	// probeTimeout bounds a dry run.
	probeTimeout = 10 * time.Second
	// probeInterval is how often kwok-dra checks whether the API server has been replaced, or now keeps what it
	// dropped.
	probeInterval = 30 * time.Second
	// probeRetryInterval is how soon a field is probed again after a probe failed.
	probeRetryInterval = 5 * time.Second
	// doubtInterval is how soon a doubt that was not confirmed may be raised again.
	doubtInterval = 10 * time.Minute
)

// Prober finds out which fields the API server keeps. The version does not show it, so it probes with a dry run, once
// for each field that is used, in the background.
type Prober struct {
	client  resourceclient.ResourceSliceInterface
	version discovery.ServerVersionInterfaceWithContext
	// doubts has room for one, so that a sender never waits.
	doubts chan struct{}
	// running are the probes in progress.
	running sync.WaitGroup

	mu sync.Mutex
	// probes has what is known of each field. Only watchServer drops them.
	probes map[*features.Field]*probe
	layout devices.Layout
	// doubted has when each doubt was last raised.
	doubted map[string]time.Time
}

// probe is what is known of a field, by the last probe that has ended.
type probe struct {
	answer
	err     error
	endedAt time.Time
	// inProgress is closed when the next probe ends, and nil if there is none.
	inProgress chan struct{}
	// requeue is called then for each worker that lacks the answer.
	requeue []func()
}

// answer says whether the API server keeps a field, and for counters how it wants them divided.
type answer struct {
	isKept bool
	layout devices.Layout
}

// NewProber makes a Prober for the API server of a client.
func NewProber(client kubernetes.Interface) *Prober {
	return &Prober{
		client: client.ResourceV1().ResourceSlices(), version: client.Discovery(),
		doubts: make(chan struct{}, 1), doubted: map[string]time.Time{}, probes: map[*features.Field]*probe{},
	}
}

// Layout implements features.Server.
func (p *Prober) Layout() devices.Layout {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.layout
}

// Keeps implements features.Server. It waits for the answer.
func (p *Prober) Keeps(ctx context.Context, field *features.Field) (bool, error) {
	for {
		known := p.probeOnce(ctx, field, nil)
		if known.inProgress == nil {
			return known.isKept, known.err
		}
		select {
		case <-known.inProgress:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// errNotProbed says that the answer about a field comes later.
var errNotProbed = errors.New("the API server has not answered yet whether it keeps a field")

// workerAnswers are the answers of a Prober for a worker, which must not wait: requeue is called with an answer that is
// missing.
type workerAnswers struct {
	*Prober
	requeue func()
}

// Keeps implements features.Server. If the answer is missing, it returns errNotProbed, or why the last probe failed.
func (w workerAnswers) Keeps(ctx context.Context, field *features.Field) (bool, error) {
	known := w.probeOnce(ctx, field, w.requeue)
	if known.inProgress != nil && known.err == nil {
		return false, errNotProbed
	}
	return known.isKept, known.err
}

// isIdle reports whether no worker waits for an answer.
func (p *Prober) isIdle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, known := range p.probes {
		if len(known.requeue) > 0 {
			return false
		}
	}
	return true
}

// probeOnce returns what is known of a field. It starts a probe if there was none, or if the last one failed a while
// ago. Requeue, if there is one, is called once that has ended.
func (p *Prober) probeOnce(ctx context.Context, field *features.Field, requeue func()) probe {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.probes[field]
	if known == nil {
		known = &probe{}
		p.probes[field] = known
	}
	isDue := known.endedAt.IsZero() || known.err != nil && time.Since(known.endedAt) >= probeRetryInterval
	if known.inProgress == nil && isDue {
		known.inProgress = make(chan struct{})
		p.running.Go(func() {
			found, err := p.probeField(ctx, field)
			p.mu.Lock()
			defer p.mu.Unlock()
			if err == nil && field.Name == features.Counters && p.probes[field] == known {
				p.layout = found.layout
			}
			if err == nil || known.err == nil { // a worker that got the last error tries again by itself
				for _, requeue := range known.requeue {
					requeue()
				}
			}
			close(known.inProgress)
			*known = probe{answer: found, err: err, endedAt: time.Now()}
		})
	}
	if requeue != nil && known.inProgress != nil {
		known.requeue = append(known.requeue, requeue)
	}
	return *known
}

// probeField asks the API server by a dry run. It drops a field whose gate is off, or refuses what is left without it.
func (p *Prober) probeField(ctx context.Context, field *features.Field) (answer, error) {
	layout, spec := devices.CountersApart, field.Probe()
	for {
		bounded, cancel := context.WithTimeout(ctx, probeTimeout)
		slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{GenerateName: v1alpha1.ManagedByValue + "-probe-"}, Spec: spec}
		stored, err := p.client.Create(bounded, slice, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		cancel()
		isRefused := len(refusedFields(err)) > 0
		switch {
		case isRefused && field.Name == features.Counters && layout == devices.CountersApart:
			// Kubernetes 1.34 wants the counter set in the slice of the devices.
			consumed := spec.Devices[0].ConsumesCounters[0]
			spec.SharedCounters = []resourcev1.CounterSet{{Name: consumed.CounterSet, Counters: consumed.Counters}}
			layout = devices.CountersWithDevices
		case isRefused:
			return answer{layout: layout}, nil
		case err != nil:
			return answer{}, fmt.Errorf("ask the API server whether it keeps %s: %w", field.Name, err)
		default:
			return answer{field.Kept(&stored.Spec), layout}, nil
		}
	}
}

// refusedFields are the fields of the spec that the API server's validation refuses, without indices and keys. An
// admission policy that refuses a slice names none.
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

// raiseDoubt has the Prober probe again soon if a write fails as it would if the API server dropped a field that it
// kept before: a feature gate may have been turned off. Until then the answers stay, so that nothing is wrong before
// the next write. A doubt that was not confirmed is not raised again for a while: something else refuses.
func (p *Prober) raiseDoubt(err error) {
	reason := strings.Join(refusedFields(err), ",")
	if errors.Is(err, errStored) {
		reason = errStored.Error()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if raised, isKnown := p.doubted[reason]; reason == "" || isKnown && time.Since(raised) < doubtInterval {
		return
	}
	p.doubted[reason] = time.Now()
	select {
	case p.doubts <- struct{}{}:
	default:
	}
}

// watchServer drops all answers and calls changed when the API server has been replaced, keeps what it dropped, or
// drops what it kept. It checks the latter only after a doubt, which it follows up at once, and further doubts not
// before the next tick. It returns when ctx ends.
func (p *Prober) watchServer(ctx context.Context, changed func()) {
	version, doubts := p.serverVersion(ctx, ""), p.doubts
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	for {
		isDoubted := false
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			doubts = p.doubts
		case <-doubts:
			isDoubted, doubts = true, nil
		}
		last := version
		version = p.serverVersion(ctx, last)
		known := map[*features.Field]answer{}
		p.mu.Lock()
		for field, probed := range p.probes {
			if probed.inProgress == nil && probed.err == nil {
				known[field] = probed.answer
			}
		}
		p.mu.Unlock()
		isOutdated := version != last
		for field, before := range known {
			if !isOutdated && (!before.isKept || isDoubted) {
				now, err := p.probeField(ctx, field)
				isOutdated = err == nil && now != before
			}
		}
		if isOutdated {
			p.mu.Lock()
			clear(p.probes)
			clear(p.doubted)
			p.mu.Unlock()
			changed()
		}
	}
}

// serverVersion is the version of the API server, or the last one if it does not answer.
func (p *Prober) serverVersion(ctx context.Context, last string) string {
	info, err := p.version.ServerVersionWithContext(ctx)
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Failed to get the API server's version", "err", err)
		return last
	}
	return info.String()
}

// Package status tells in the status of ResourcePoolTemplates that are objects
// in the cluster whether they are in force, and where they are published.
package status

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/config"
	publishing "github.com/kwok-dra/kwok-dra/pkg/slices"
)

// interval is the least time between two looks at all templates. A fleet that
// comes up changes the counts with each node.
const interval = time.Second

// Writer writes the status of templates when it changes, and at no other time.
type Writer struct {
	client dynamic.ResourceInterface
	// acceptance tells of the templates there are.
	acceptance func() map[string]config.Acceptance
	// changed has room for one, so that whoever signals never waits.
	changed chan struct{}

	mu sync.Mutex
	// outcomes maps nodes, and pools that nodes share, to what became of templates
	// there.
	outcomes map[string]map[string]publishing.Outcome
}

// New makes a Writer; Run starts it.
func New(client dynamic.Interface, acceptance func() map[string]config.Acceptance) *Writer {
	return &Writer{
		client:     client.Resource(v1alpha1.GroupVersion.WithResource("resourcepooltemplates")),
		acceptance: acceptance,
		changed:    make(chan struct{}, 1),
		outcomes:   map[string]map[string]publishing.Outcome{},
	}
}

// Outcomes takes what became of the templates on a node, or of a pool that nodes
// share, in place of what was known of it.
func (w *Writer) Outcomes(of string, templates map[string]publishing.Outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(templates) == 0 {
		delete(w.outcomes, of)
	} else {
		w.outcomes[of] = templates
	}
	w.Changed()
}

// Changed has the templates looked at soon.
func (w *Writer) Changed() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// Run writes until ctx ends.
func (w *Writer) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.changed:
		}
		w.write(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(interval):
		}
	}
}

// write brings every template's status up to date. One that cannot be written is
// tried again.
func (w *Writer) write(ctx context.Context) {
	all := w.totals()
	templates := w.acceptance()
	for _, name := range slices.Sorted(maps.Keys(templates)) {
		status, differs := plan(templates[name], all[name], metav1.Now())
		if !differs {
			continue
		}
		err := w.patch(ctx, name, status)
		if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Cannot tell what became of a template")
			w.Changed()
		}
	}
}

func (w *Writer) patch(ctx context.Context, name string, status v1alpha1.ResourcePoolTemplateStatus) error {
	patch, err := json.Marshal(map[string]any{"status": status})
	if err == nil {
		_, err = w.client.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	if err != nil {
		return fmt.Errorf("write status of ResourcePoolTemplate %s: %w", name, err)
	}
	return nil
}

// totals adds up what became of each template.
func (w *Writer) totals() map[string]totals {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[string]totals{}
	first := map[string]string{}
	for of, outcomes := range w.outcomes {
		for name, outcome := range outcomes {
			sum := all[name]
			sum.slices += int64(outcome.Slices)
			sum.devices += int64(outcome.Devices)
			switch {
			case outcome.Problem != nil:
				sum.failing++
				if first[name] == "" || of < first[name] {
					first[name], sum.problem = of, of+": "+outcome.Problem.Error()
				}
			case outcome.Slices > 0:
				sum.published++
			default:
				sum.waiting++
			}
			all[name] = sum
		}
	}
	return all
}

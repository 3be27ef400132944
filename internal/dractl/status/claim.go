package status

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/history"
)

// readStory reads the story of a claim.
func readStory(ctx context.Context, client kubernetes.Interface, namespace, name string) (*history.Story, error) {
	claim, err := getClaim(ctx, client, namespace, name)
	if err != nil {
		return nil, err
	}
	s := &history.Story{Claim: claim, Pods: map[string]*corev1.Pod{}}
	for _, consumer := range history.ConsumingPods(claim) {
		pod, err := client.CoreV1().Pods(namespace).Get(ctx, consumer, metav1.GetOptions{})
		switch {
		case err == nil:
			s.Pods[consumer] = pod
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("get pod %s/%s: %w", namespace, consumer, err)
		}
	}
	events, err := client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	s.Events = cluster.Pointers(events.Items)
	return s, nil
}

// getClaim gets a claim that the user has named. The error for one that does not exist says what may be
// meant: often the name is that of a Pod, whose claim was made from a template.
func getClaim(ctx context.Context, client kubernetes.Interface, namespace, name string) (*resourcev1.ResourceClaim, error) {
	claim, err := client.ResourceV1().ResourceClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		list, err := client.ResourceV1().ResourceClaims(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("there is no claim %q in namespace %s: list claims: %w", name, namespace, err)
		}
		var names []string
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
			for _, owner := range list.Items[i].OwnerReferences {
				if owner.Kind == "Pod" && owner.Name == name {
					return nil, fmt.Errorf("there is no claim %q in namespace %s: Pod %s has the claim %s", name, namespace, name, list.Items[i].Name)
				}
			}
		}
		return nil, cli.NotFound(fmt.Sprintf("there is no claim %q in namespace %s", name, namespace), name, names,
			"list them with kubectl get resourceclaims -n "+namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("get resourceclaim %s/%s: %w", namespace, name, err)
	}
	return claim, nil
}

// stepTable shows steps, with the time since the first in whole seconds: most times in the API have no
// fraction, so the fraction of a difference would be wrong.
func stepTable(steps []history.Step) *output.Rows {
	columns := []output.Column{{Name: "time"}, {Name: "after"}, {Name: "object"}, {Name: "step"}, {Name: "detail"}}
	table := &output.Rows{Columns: columns, Tail: true}
	var first time.Time
	for i := range steps {
		step := &steps[i]
		at, after := "<unknown>", "<unknown>"
		if step.Time != nil {
			if first.IsZero() {
				first = step.Time.Truncate(time.Second)
			}
			at, after = step.Time.Format(time.RFC3339), step.Time.Truncate(time.Second).Sub(first).String()
			if step.Time.Nanosecond() != 0 {
				at = step.Time.Format("2006-01-02T15:04:05.000Z07:00") // as much of the second as is known
			}
		}
		table.Add(at, after, cmp.Or(step.Object, "claim"), step.What, output.OrNone(step.Detail))
	}
	return table
}

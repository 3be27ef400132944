package why

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/simulator"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/why"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/snapshot"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// question is what is asked about, and what is read to answer it.
type question struct {
	reader    *reading.Reader
	namespace string
	now       time.Time
	// pods are those asked about, and claims, too. Pods of claims are those of the namespace.
	pods        []*corev1.Pod
	claims      []*resourcev1.ResourceClaim
	podsOfClaim []*corev1.Pod
	// workload makes the Pods, if the user names one.
	workload *workload
	// isNamed says that the user names each Pod and claim.
	isNamed bool
}

// resolve reads what is asked about.
func (q *question) resolve(ctx context.Context, subjects []subject, selector string) error {
	if len(subjects) == 0 {
		var err error
		q.pods, err = q.reader.Pods(ctx, q.namespace, selector)
		return err
	}
	client := q.reader.Client()
	q.isNamed = true
	for _, named := range subjects {
		switch named.kind {
		case podKind:
			pod, err := reading.GetPod(ctx, client, q.namespace, named.name)
			if err != nil {
				return err
			}
			q.pods = append(q.pods, pod)
		case claimKind:
			claim, err := q.reader.GetClaim(ctx, q.namespace, named.name)
			if err != nil {
				return err
			}
			q.claims = append(q.claims, claim)
		default:
			if err := q.resolveWorkload(ctx, named, len(subjects) == 1); err != nil {
				return err
			}
		}
	}
	var err error
	if len(q.claims) > 0 {
		q.podsOfClaim, err = q.reader.Pods(ctx, q.namespace, "")
	}
	return err
}

// resolveWorkload reads the Pods of a workload, which are grouped if it is the only subject.
func (q *question) resolveWorkload(ctx context.Context, named subject, isOnly bool) error {
	made, err := getWorkload(ctx, q.reader.Client(), q.namespace, named)
	if err != nil {
		return err
	}
	selector := ""
	if made.selector != nil {
		selector = metav1.FormatLabelSelector(made.selector)
	}
	pods, err := q.reader.Pods(ctx, q.namespace, selector)
	if err != nil {
		return err
	}
	q.pods = append(q.pods, made.podsOf(pods)...)
	if isOnly {
		q.workload, q.isNamed = made, false
	}
	return nil
}

// findReasons reads what the answers need, and answers. Answers of a search that was interrupted would be wrong.
func (q *question) findReasons(ctx context.Context) ([]*why.Answer, error) {
	seen := &snapshot.Snapshot{Reader: q.reader, World: simulator.World{LacksPods: true}, Namespace: q.namespace}
	asked := slices.Clone(q.pods)
	for _, pod := range q.podsOfClaim {
		if slices.ContainsFunc(q.claims, func(claim *resourcev1.ResourceClaim) bool { return facts.NamesClaim(pod, claim) }) {
			asked = append(asked, pod)
		}
	}
	isUnscheduled := func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "" && !facts.IsTerminal(pod) }
	if slices.ContainsFunc(asked, isUnscheduled) {
		if err := seen.ReadForScheduling(ctx, &simulator.World{}); err != nil {
			return nil, err
		}
	} else if err := seen.ReadForNodes(ctx, nodesOf(asked)); err != nil {
		return nil, err
	}
	if err := q.readNamespace(ctx, seen, asked); err != nil {
		return nil, err
	}
	events, err := q.readEvents(ctx, asked)
	if err != nil {
		return nil, err
	}
	answers, mayFit := q.answerBy(ctx, seen, events)
	if !mayFit {
		return answers, ctx.Err()
	}
	// Only now it matters what other Pods take of the nodes.
	if err := seen.ReadPods(ctx, asked); err != nil {
		return nil, err
	}
	answers, _ = q.answerBy(ctx, seen, events)
	return answers, ctx.Err()
}

// answerBy answers by what is read. mayFit says that devices keep none of some Pods away.
func (q *question) answerBy(ctx context.Context, seen *snapshot.Snapshot, events []*corev1.Event) (answers []*why.Answer, mayFit bool) {
	known := why.NewWorldCluster(&seen.World, events)
	known.Now, known.Unread = q.now, seen.Unread()
	for _, pod := range q.pods {
		answers = append(answers, known.Answer(ctx, pod))
	}
	for _, claim := range q.claims {
		answers = append(answers, known.AnswerClaim(ctx, claim, q.podsOfClaim))
	}
	return answers, slices.ContainsFunc(answers, func(a *why.Answer) bool { return a.Fits })
}

func nodesOf(pods []*corev1.Pod) []string {
	var names []string
	for _, pod := range pods {
		if pod.Spec.NodeName != "" {
			names = append(names, pod.Spec.NodeName)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// readNamespace reads whether namespaces permit admin access, where a template asks for it.
func (q *question) readNamespace(ctx context.Context, seen *snapshot.Snapshot, pods []*corev1.Pod) error {
	for _, template := range seen.World.ClaimTemplates {
		wantsIt := slices.ContainsFunc(template.Spec.Spec.Devices.Requests, func(request resourcev1.DeviceRequest) bool {
			return request.Exactly != nil && request.Exactly.AdminAccess != nil && *request.Exactly.AdminAccess
		})
		if !wantsIt || !slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return pod.Namespace == template.Namespace }) {
			continue
		}
		namespace, err := q.reader.Client().CoreV1().Namespaces().Get(ctx, template.Namespace, metav1.GetOptions{})
		switch {
		case err == nil:
			seen.World.Namespaces = append(seen.World.Namespaces, namespace)
		case !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err): // then the API server's own words have to do
			return fmt.Errorf("get namespace %s: %w", template.Namespace, err)
		}
	}
	return nil
}

// readEvents reads the warnings about Pods.
func (q *question) readEvents(ctx context.Context, pods []*corev1.Pod) ([]*corev1.Event, error) {
	const warnings = "type=" + corev1.EventTypeWarning + ",involvedObject.kind=Pod"
	if len(pods) == 0 {
		return nil, nil
	}
	if len(pods) == 1 {
		return q.reader.Events(ctx, pods[0].Namespace, warnings+",involvedObject.name="+pods[0].Name)
	}
	return q.reader.Events(ctx, q.namespace, warnings)
}

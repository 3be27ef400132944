package checkautoscaler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kwok-dra/kwok-dra/pkg/drajudge"
)

// judge judges what an autoscaler makes of a story. It divides time by the states of rest: the nodes that are made between
// two of them are for the Pods that waited in between.
type judge struct {
	groups []*group
	// observer knows the objects, and which Pods fit the nodes that exist.
	observer *drajudge.Observer

	pods  map[types.UID]*corev1.Pod
	nodes map[string]*madeNode
	// slices are by their names.
	slices map[string]*resourcev1.ResourceSlice
	// emptyBefore is how many empty nodes each group had when the story began.
	emptyBefore map[*group]int
	version     string
	// demands are the Pods that have waited since the last rest.
	demands map[types.UID]*demand
	// made are the nodes that were made since then.
	made []*madeNode
	// total counts over the whole story.
	total counts
}

// counts says how many nodes were made, and how many were enough.
type counts struct{ made, enough int }

// madeNode is a node of a group.
type madeNode struct {
	*corev1.Node

	group *group
	// isOld says that the node was there when the story began.
	isOld bool
	// waited are the Pods that have waited until it was made, since the last rest.
	waited []*demand
}

// demand is a Pod that waits, or has waited.
type demand struct {
	pod *corev1.Pod
	// groups are those whose nodes it fits. They are known once all its claims exist.
	groups  []*group
	isKnown bool
}

// newJudge begins with what exists.
func newJudge(ctx context.Context, groups []*group, existing drajudge.History) *judge {
	j := &judge{
		groups: groups, observer: drajudge.NewObserver(drajudge.Options{}),
		pods: map[types.UID]*corev1.Pod{}, nodes: map[string]*madeNode{}, slices: map[string]*resourcev1.ResourceSlice{}, emptyBefore: map[*group]int{}, demands: map[types.UID]*demand{},
	}
	for _, event := range existing {
		j.observeEvent(ctx, event)
	}
	for _, node := range j.nodes {
		node.isOld = true
		if j.isEmpty(node) {
			j.emptyBefore[node.group]++
		}
	}
	j.made = nil
	return j
}

// observeEvent takes the next event, in the order of resource versions.
func (j *judge) observeEvent(ctx context.Context, event drajudge.Event) []drajudge.Violation {
	j.observer.Observe(ctx, event)
	if accessor, isObject := event.Object.(metav1.Object); isObject {
		j.version = accessor.GetResourceVersion()
	}
	var violations []drajudge.Violation
	switch object := event.Object.(type) {
	case *resourcev1.ResourceSlice:
		if delete(j.slices, object.Name); event.Type != watch.Deleted {
			j.slices[object.Name] = object
		}
	case *corev1.Node:
		violations = j.observeNode(object, event.Type == watch.Deleted)
	case *corev1.Pod:
		violations = j.observePod(object, event.Type == watch.Deleted)
	}
	for _, d := range j.demands {
		j.findGroups(ctx, d)
	}
	return violations
}

func (j *judge) observeNode(node *corev1.Node, isDeleted bool) []drajudge.Violation {
	known := j.nodes[node.Name]
	if isDeleted {
		delete(j.nodes, node.Name)
		if known == nil {
			return nil
		}
		var users []string
		for _, pod := range j.pods {
			if pod.Spec.NodeName == node.Name && pod.DeletionTimestamp == nil && isProtected(pod) {
				users = append(users, pod.Name)
			}
		}
		if len(users) == 0 {
			return nil
		}
		slices.Sort(users)
		return []drajudge.Violation{j.newViolation(nodeKept, nameNode(node), "node %s of group %s is gone, and %s ran there with claims", node.Name, known.group.Node.Name, strings.Join(users, ", "))}
	}
	if known != nil && known.UID == node.UID {
		known.Node = node
		return nil
	}
	i := slices.IndexFunc(j.groups, func(g *group) bool { return g.hasNode(node) })
	if i < 0 {
		return nil
	}
	made := &madeNode{Node: node, group: j.groups[i], waited: slices.Collect(maps.Values(j.demands))}
	j.nodes[node.Name] = made
	j.made = append(j.made, made)
	return nil
}

func (j *judge) observePod(pod *corev1.Pod, isDeleted bool) []drajudge.Violation {
	known := j.pods[pod.UID]
	if isDeleted {
		delete(j.pods, pod.UID)
		return nil
	}
	j.pods[pod.UID] = pod
	if drajudge.IsWaiting(pod) && j.demands[pod.UID] == nil {
		j.demands[pod.UID] = &demand{pod: pod}
	}
	if d := j.demands[pod.UID]; d != nil {
		d.pod = pod
	}
	if isEvicted(pod) && isProtected(pod) && (known == nil || !isEvicted(known)) {
		return []drajudge.Violation{j.newViolation(nodeKept, namePod(pod), "Pod %s was evicted from node %s, where it has claims", pod.Name, pod.Spec.NodeName)}
	}
	return nil
}

// isProtected reports whether a Pod uses claims that nobody may take from it.
func isProtected(pod *corev1.Pod) bool {
	return len(pod.Spec.ResourceClaims) > 0 && !drajudge.HasEnded(pod) && pod.Annotations["karpenter.sh/do-not-disrupt"] == "true"
}

func isEvicted(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == "EvictionByEvictionAPI"
	})
}

// findGroups finds the groups that a Pod fits, once its claims exist.
func (j *judge) findGroups(ctx context.Context, d *demand) {
	if d.isKnown {
		return
	}
	var groups []*group
	for _, g := range j.groups {
		fits, isClear := g.Fits(ctx, j.observer, d.pod)
		if !isClear {
			return
		}
		if fits {
			groups = append(groups, g)
		}
	}
	d.groups, d.isKnown = groups, true
}

// judgeNodes judges the nodes that were made since the last rest.
func (j *judge) judgeNodes() []drajudge.Violation {
	fitting := 0
	for _, d := range j.demands {
		if len(d.groups) > 0 || !d.isKnown {
			fitting++
		}
	}
	var violations []drajudge.Violation
	for i, node := range j.made {
		var names []string
		isUseful := false
		for _, d := range node.waited {
			names = append(names, d.pod.Name)
			isUseful = isUseful || !d.isKnown || slices.Contains(d.groups, node.group)
		}
		slices.Sort(names)
		switch {
		case len(names) == 0:
			violations = append(violations, j.newViolation(nodeNeeded, nameNode(node.Node), "node %s was made in group %s, and no Pod waited", node.Name, node.group.Node.Name))
		case !isUseful:
			violations = append(violations, j.newViolation(nodeFits, nameNode(node.Node), "node %s was made in group %s, and none of the Pods that waited fits it: %s", node.Name, node.group.Node.Name, strings.Join(names, ", ")))
		case i >= fitting*(fitting+1)/2:
			violations = append(violations, j.newViolation(nodeNeeded, nameNode(node.Node), "node %s is new node %d, and only %d Pods waited that fit a group", node.Name, i+1, fitting))
		}
	}
	return violations
}

// judgeRest judges the state of rest, and says what keeps the judge from it.
func (j *judge) judgeRest(ctx context.Context) (violations []drajudge.Violation, problems []string) {
	violations, problems = j.judgeWaiting(ctx)
	empty := map[*group][]*madeNode{}
	for _, name := range slices.Sorted(maps.Keys(j.nodes)) {
		node := j.nodes[name]
		if problem := j.missingDevices(node); problem != "" {
			problems = append(problems, problem)
		}
		if j.isEmpty(node) {
			empty[node.group] = append(empty[node.group], node)
		}
	}
	for _, g := range j.groups {
		if len(empty[g]) <= j.emptyBefore[g] {
			continue
		}
		for _, node := range empty[g] {
			if !node.isOld {
				violations = append(violations, j.newViolation(nodeRemoved, nameNode(node.Node), "node %s is empty, and group %s had %d empty nodes before", node.Name, g.Node.Name, j.emptyBefore[g]))
			}
		}
	}
	return violations, problems
}

// judgeWaiting judges the Pods that wait. If one fits a node that exists, the scheduler is at fault.
func (j *judge) judgeWaiting(ctx context.Context) (violations []drajudge.Violation, problems []string) {
	placeable := map[types.UID]string{}
	for _, v := range j.observer.AtRest(ctx) {
		if id := v.Statement.ID; id == "pod-placed" || id == "pod-placeable" {
			placeable[v.Objects[0].UID] = v.Evidence
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(j.demands)) {
		d := j.demands[uid]
		pod := j.pods[uid]
		if pod == nil || !drajudge.IsWaiting(pod) || len(d.groups) == 0 {
			continue
		}
		if evidence, fits := placeable[uid]; fits {
			problems = append(problems, fmt.Sprintf("the scheduler leaves Pod %s waiting: %s", pod.Name, evidence))
			continue
		}
		var names []string
		for _, g := range d.groups {
			names = append(names, g.Node.Name)
		}
		violations = append(violations, j.newViolation(nodeMade, namePod(pod), "Pod %s waits, and fits a new node of group %s", pod.Name, strings.Join(names, " or ")))
	}
	return violations, problems
}

// isEmpty reports whether no Pod has a node but those that come with it.
func (j *judge) isEmpty(node *madeNode) bool {
	for _, pod := range j.pods {
		if pod.Spec.NodeName == node.Name && needsNode(pod) {
			return false
		}
	}
	return true
}

// needsNode reports whether a Pod has not ended, and would not come with another node as well.
func needsNode(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return !drajudge.HasEnded(pod) && (owner == nil || owner.Kind != "DaemonSet" && owner.Kind != "Node")
}

// missingDevices says that a node is not what the groups promise.
func (j *judge) missingDevices(node *madeNode) string {
	var published []*resourcev1.ResourceSlice
	for _, slice := range j.slices {
		if slice.Spec.NodeName != nil && *slice.Spec.NodeName == node.Name {
			published = append(published, slice)
		}
	}
	found := devicesByDriver(published)
	for driver, devices := range devicesByDriver(node.group.Slices) {
		if len(found[driver]) != len(devices) {
			return fmt.Sprintf("node %s has %d devices of %s, and a node of group %s should have %d: correct the files of --filename, or start what publishes the devices",
				node.Name, len(found[driver]), driver, node.group.Node.Name, len(devices))
		}
	}
	return ""
}

// closeRest ends the time since the last rest: it counts nodes, and forgets Pods that wait no longer.
func (j *judge) closeRest(ctx context.Context) {
	if enough, isKnown := j.countEnough(ctx); isKnown {
		j.total.made += len(j.made)
		j.total.enough += enough
	}
	j.made = nil
	maps.DeleteFunc(j.demands, func(uid types.UID, _ *demand) bool {
		pod := j.pods[uid]
		return pod == nil || !drajudge.IsWaiting(pod)
	})
}

func (j *judge) newViolation(s drajudge.Statement, object drajudge.Object, evidence string, arguments ...any) drajudge.Violation {
	return drajudge.Violation{Statement: s, ResourceVersion: j.version, Objects: []drajudge.Object{object}, Evidence: fmt.Sprintf(evidence, arguments...)}
}

func nameNode(node *corev1.Node) drajudge.Object {
	return drajudge.Object{Kind: "Node", Name: node.Name, UID: node.UID}
}

func namePod(pod *corev1.Pod) drajudge.Object {
	return drajudge.Object{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
}

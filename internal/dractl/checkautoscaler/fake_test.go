package checkautoscaler

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/dractl/trial"
	"github.com/kwok-dra/kwok-dra/internal/dractl/trial/trialtest"
	"github.com/kwok-dra/kwok-dra/internal/testing/apitest"
)

const (
	// tick is how often the autoscaler and the scheduler look at all Pods.
	tick = 2 * time.Second
	// emptyTime is how long a node is empty before it goes.
	emptyTime = 30 * time.Second
)

// fake is a cluster with a scheduler and an autoscaler, which are right but for what the fields say.
type fake struct {
	trialtest.Cluster

	groups []*group
	// ignoresDevices makes a node for each Pod that waits, makesTwo two nodes instead of one, and makesNone none.
	ignoresDevices, makesTwo, makesNone bool
	// neverRests makes a node for such a Pod again and again, and removes it soon.
	neverRests bool
	// packsBadly makes a node for each Pod.
	packsBadly bool
	// removesUsed removes each node after a while, evictsPods evicts the Pods of each, and keepsEmpty keeps each.
	removesUsed, evictsPods, keepsEmpty bool
	// hasNoDriver publishes no devices.
	hasNoDriver bool
	// minimum is how many nodes of the first group are always there.
	minimum int

	made int
	// emptySince are the nodes without Pods, and servedPods the Pods that got a node though they fit none.
	emptySince map[string]time.Time
	madeAt     map[string]time.Time
	servedPods map[types.UID]bool
}

// run runs the cluster until ctx ends.
func (f *fake) run(ctx context.Context) {
	for range f.minimum {
		f.makeNode(f.groups[0])
	}
	for trial.Pause(ctx, tick) == nil {
		f.Turn.Lock()
		f.schedulePods()
		f.makeNodes()
		f.removeNodes()
		f.Turn.Unlock()
	}
}

func (f *fake) waitingPods() []*corev1.Pod {
	var waiting []*corev1.Pod
	for _, pod := range f.pods() {
		if pod.Spec.NodeName == "" {
			waiting = append(waiting, pod)
		}
	}
	return waiting
}

func (f *fake) pods() []*corev1.Pod {
	list, err := f.CoreV1().Pods("").List(context.Background(), metav1.ListOptions{})
	trialtest.Must(err)
	var pods []*corev1.Pod
	for i := range list.Items {
		pods = append(pods, &list.Items[i])
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return pods
}

func (f *fake) nodes() []corev1.Node {
	list, err := f.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
	trialtest.Must(err)
	return list.Items
}

// needs are how many devices of each driver a Pod claims, or nil if no device matches.
func (f *fake) needs(pod *corev1.Pod) map[string]int {
	needs := map[string]int{}
	for _, reference := range pod.Spec.ResourceClaims {
		claim := apitest.Get[resourcev1.ResourceClaim](f.Server, pod.Namespace, *reference.ResourceClaimName)
		for _, request := range claim.Spec.Devices.Requests {
			if len(request.Exactly.Selectors) > 0 {
				return nil
			}
			needs[strings.TrimPrefix(request.Exactly.DeviceClassName, pod.Namespace+"-")] += int(request.Exactly.Count)
		}
	}
	return needs
}

// offer is how many devices of each driver a node has.
func offer(g *group) map[string]int {
	offered := map[string]int{}
	for driver, devices := range devicesByDriver(g.Slices) {
		offered[strings.ReplaceAll(driver, ".", "-")] = len(devices)
	}
	return offered
}

// take takes what a Pod needs, and reports whether there is enough.
func take(offered, needs map[string]int) bool {
	for driver, count := range needs {
		if offered[driver] < count {
			return false
		}
	}
	for driver, count := range needs {
		offered[driver] -= count
	}
	return needs != nil
}

// schedulePods binds Pods to nodes that have devices left.
func (f *fake) schedulePods() {
	if f.hasNoDriver {
		return
	}
	for _, pod := range f.waitingPods() {
		for _, node := range f.nodes() {
			g := f.groupOf(&node)
			left, used := offer(g), f.devicesUsed(node.Name)
			take(left, used)
			if selectsOther(pod, &node) || !take(left, f.needs(pod)) {
				continue
			}
			f.allocate(pod, node.Name, g, used)
			apitest.Edit(f.Server, pod.Namespace, pod.Name, func(pod *corev1.Pod) { pod.Spec.NodeName = node.Name })
			break
		}
	}
}

func (f *fake) podsOn(node string) []*corev1.Pod {
	return slices.DeleteFunc(f.pods(), func(pod *corev1.Pod) bool { return pod.Spec.NodeName != node })
}

// devicesUsed is how many devices of each driver the Pods of a node have.
func (f *fake) devicesUsed(node string) map[string]int {
	used := map[string]int{}
	for _, pod := range f.podsOn(node) {
		for driver, count := range f.needs(pod) {
			used[driver] += count
		}
	}
	return used
}

// allocate gives the claims of a Pod the next devices of a node.
func (f *fake) allocate(pod *corev1.Pod, node string, g *group, used map[string]int) {
	for _, reference := range pod.Spec.ResourceClaims {
		apitest.Edit(f.Server, pod.Namespace, *reference.ResourceClaimName, func(claim *resourcev1.ResourceClaim) {
			allocation := &resourcev1.AllocationResult{NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
			}}}}
			for _, request := range claim.Spec.Devices.Requests {
				for driver, devices := range devicesByDriver(g.Slices) {
					short := strings.ReplaceAll(driver, ".", "-")
					if request.Exactly.DeviceClassName != pod.Namespace+"-"+short {
						continue
					}
					for range request.Exactly.Count {
						allocation.Devices.Results = append(allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{
							Request: request.Name, Driver: driver, Pool: node, Device: devices[used[short]].Name,
						})
						used[short]++
					}
				}
			}
			claim.Status.Allocation = allocation
			claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: pod.Name, UID: pod.UID}}
		})
	}
}

func selectsOther(pod *corev1.Pod, node *corev1.Node) bool {
	for key, value := range pod.Spec.NodeSelector {
		if node.Labels[key] != value {
			return true
		}
	}
	return false
}

func (f *fake) groupOf(node *corev1.Node) *group {
	return f.groups[slices.IndexFunc(f.groups, func(g *group) bool { return g.hasNode(node) })]
}

// makeNodes makes nodes for the Pods that wait, which have found no place.
func (f *fake) makeNodes() {
	if f.makesNone {
		return
	}
	type planned struct {
		group *group
		left  map[string]int
	}
	var plan []*planned
	for _, pod := range f.waitingPods() {
		needs := f.needs(pod)
		if f.ignoresDevices {
			if f.servesBlindly(pod) {
				plan = append(plan, &planned{group: f.groups[0]})
			}
			continue
		}
		if !f.packsBadly && slices.ContainsFunc(plan, func(p *planned) bool { return !selectsOther(pod, p.group.Node) && take(p.left, needs) }) {
			continue
		}
		for _, g := range f.groups {
			if left := offer(g); !selectsOther(pod, g.Node) && take(left, needs) {
				plan = append(plan, &planned{g, left})
				break
			}
		}
	}
	for _, p := range plan {
		f.makeNode(p.group)
		if f.makesTwo {
			f.makeNode(p.group)
		}
	}
}

// servesBlindly reports whether a Pod gets a node though nobody has looked at its claims.
func (f *fake) servesBlindly(pod *corev1.Pod) bool {
	isServed := f.servedPods[pod.UID]
	f.servedPods[pod.UID] = true
	return !isServed || f.neverRests && f.countNodes(f.groups[0]) == 0
}

func (f *fake) makeNode(g *group) {
	f.made++
	node := g.Node.DeepCopy()
	node.Name = fmt.Sprintf("%s-%d", g.Node.Name, f.made)
	node.UID = types.UID(uuid.NewString())
	f.Add(node)
	f.madeAt[node.Name] = time.Now()
	if f.hasNoDriver {
		return
	}
	for i, slice := range g.Slices {
		slice := slice.DeepCopy()
		slice.Name = fmt.Sprintf("%s-%d", node.Name, i)
		slice.UID = types.UID(uuid.NewString())
		slice.Spec.NodeName, slice.Spec.Pool.Name = new(node.Name), node.Name
		f.Add(slice)
	}
}

// removeNodes removes nodes that are empty for a while.
func (f *fake) removeNodes() {
	f.removeSlices()
	for _, node := range f.nodes() {
		pods := f.podsOn(node.Name)
		if len(pods) > 0 {
			delete(f.emptySince, node.Name)
			if time.Since(f.madeAt[node.Name]) > emptyTime/2 {
				f.disturb(&node, pods)
			}
			continue
		}
		if f.emptySince[node.Name].IsZero() {
			f.emptySince[node.Name] = time.Now()
		}
		isSpare := f.groupOf(&node) != f.groups[0] || f.countNodes(f.groups[0]) > f.minimum
		isDue := f.neverRests || time.Since(f.emptySince[node.Name]) > emptyTime
		if !f.keepsEmpty && isSpare && isDue {
			f.removeNode(node.Name)
		}
	}
}

// disturb does to a node in use what no autoscaler may do.
func (f *fake) disturb(node *corev1.Node, pods []*corev1.Pod) {
	switch {
	case f.removesUsed:
		f.removeNode(node.Name)
	case f.evictsPods:
		for _, pod := range pods {
			apitest.Edit(f.Server, pod.Namespace, pod.Name, func(pod *corev1.Pod) {
				pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI"}}
			})
		}
	default:
		return
	}
	for _, pod := range pods { // as the garbage collector of Pods does
		trialtest.DeleteObject[corev1.Pod](context.Background(), &f.Cluster, pod.Namespace, pod.Name)
	}
}

func (f *fake) countNodes(g *group) int {
	count := 0
	for _, node := range f.nodes() {
		if g.hasNode(&node) {
			count++
		}
	}
	return count
}

func (f *fake) removeNode(name string) {
	apitest.Edit(f.Server, "", name, func(node *corev1.Node) { node.DeletionTimestamp = new(metav1.Now()) })
	f.Remove(apitest.Get[corev1.Node](f.Server, "", name))
	delete(f.emptySince, name)
}

// removeSlices removes the slices of nodes that have gone.
func (f *fake) removeSlices() {
	nodes := f.nodes()
	list, err := f.ResourceV1().ResourceSlices().List(context.Background(), metav1.ListOptions{})
	trialtest.Must(err)
	for i := range list.Items {
		if !slices.ContainsFunc(nodes, func(node corev1.Node) bool { return node.Name == *list.Items[i].Spec.NodeName }) {
			f.Remove(&list.Items[i])
		}
	}
}

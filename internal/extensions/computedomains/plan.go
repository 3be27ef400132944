package computedomains

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
)

// nodeView is what is known of a node.
type nodeView struct {
	node *corev1.Node
	// pods are those with claims on the node, and claims what is cached of a Pod's claims.
	pods   []*corev1.Pod
	claims func(pod *corev1.Pod) map[string]*resourcev1.ResourceClaim
	// namespaceOf returns the namespace of a ComputeDomain, or "" if there is none.
	namespaceOf func(domain string) string
}

// nodePlan is what a node needs now.
type nodePlan struct {
	// domain is the ComputeDomain that Pods on the node have or want a channel of, whether it exists or not.
	domain string
	// daemon is the Pod that plays a daemon, if one runs, and clique the one that it belongs to, if any.
	daemon *corev1.Pod
	clique cliqueKey
	// label is what domainLabel has to become, if not nil. An empty one is removed.
	label *string
	// labelDaemon says that the daemon has to name its clique in a label of its Pod.
	labelDaemon bool
	// readyDaemon says that the daemon's Pod has to become ready again. kube-controller-manager has marked it as not
	// ready with its Node, and the kubelet of a Node that is back reports what it sees.
	readyDaemon bool
	// wait is the time until that is decided, if not 0.
	wait time.Duration
}

// readyDelay is how long a Pod that was marked as not ready stays so at least. By then the cache has seen why: the Node
// changed before the Pod did.
const readyDelay = 5 * time.Second

// planNode plans for a node what its plugin and its daemon write to the Node and to the daemon's Pod.
func planNode(v *nodeView, now time.Time) (plan nodePlan) {
	current := v.node.Labels[domainLabel]
	var wanted []string
	for _, pod := range v.pods {
		for _, use := range usesOf(pod, v.claims(pod)) {
			switch {
			case use.kind == channelConfig:
				plan.domain = use.domain
				if v.namespaceOf(use.domain) == pod.Namespace {
					wanted = append(wanted, use.domain)
				}
			case pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning && pod.Status.PodIP != "":
				plan.daemon = pod
				if fabric := v.node.Labels[fabricLabel]; fabric != "" {
					plan.clique = cliqueKey{Namespace: pod.Namespace, Name: cliqueName(use.domain, fabric)}
				}
			}
		}
	}
	// A second ComputeDomain waits until the Pods of the first one have gone.
	if want := append(wanted, "")[0]; !slices.Contains(wanted, current) && want != current && lifecycle.PluginOf(v.node) == lifecycle.PluginUp {
		plan.label = &want
	}
	if plan.daemon == nil {
		return plan
	}
	named, isNamed := plan.daemon.Labels[cliqueLabel]
	plan.labelDaemon = !isNamed || named != v.node.Labels[fabricLabel]
	ready, containers := facts.PodCondition(plan.daemon, corev1.PodReady), facts.PodCondition(plan.daemon, corev1.ContainersReady)
	if isNodeReady(v.node) && ready.Status == corev1.ConditionFalse && containers.Status == corev1.ConditionTrue {
		plan.wait = max(0, ready.LastTransitionTime.Add(readyDelay).Sub(now))
		plan.readyDaemon = plan.wait == 0
	}
	return plan
}

// use is one device of a ComputeDomain that a Pod has.
type use struct{ domain, kind string }

// usesOf lists the devices of ComputeDomains that a Pod has in its claims. A Pod that has ended has none.
func usesOf(pod *corev1.Pod, claims map[string]*resourcev1.ResourceClaim) (uses []use) {
	if facts.IsTerminal(pod) {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		claim := claims[name]
		if claim.Status.Allocation == nil {
			continue
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			for _, kind := range []string{channelConfig, daemonConfig} {
				if domain := domainOf(claim, &result, kind); domain != "" {
					uses = append(uses, use{domain, kind})
				}
			}
		}
	}
	return uses
}

func isNodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	})
}

// isDaemonReady reports whether a daemon finds its own Pod ready.
func isDaemonReady(pod *corev1.Pod) bool {
	return facts.PodCondition(pod, corev1.PodReady).Status == corev1.ConditionTrue
}

// cliqueView is what is known of a clique.
type cliqueView struct {
	key cliqueKey
	// existing is nil if there is no such object.
	existing *clique
	// daemons maps the nodes that this replica acts for to the Pods that play their daemons, or to nil where a node has
	// none in this clique. The entries of other nodes are left alone.
	daemons map[string]*corev1.Pod
}

// planClique returns the clique as its daemons would have it, or nil if it is that already. It also returns the nodes
// whose daemons find no free index, since the clique is full.
func planClique(v *cliqueView) (want *unstructured.Unstructured, full []string) {
	domain, id := splitCliqueName(v.key.Name)
	want = &unstructured.Unstructured{}
	var before []daemonEntry
	if v.existing != nil {
		want, before = v.existing.object.DeepCopy(), v.existing.daemons
	} else {
		want.SetGroupVersionKind(apiVersion.WithKind("ComputeDomainClique"))
		want.SetNamespace(v.key.Namespace)
		want.SetName(v.key.Name)
		want.SetLabels(map[string]string{domainLabel: domain, cliqueLabel: id})
	}
	var entries []daemonEntry
	hasEntry, isTaken := map[string]bool{}, map[int]bool{}
	for _, entry := range before {
		pod, isOurs := v.daemons[entry.NodeName]
		switch {
		case !isOurs:
		case pod == nil:
			continue
		default:
			entry.IPAddress, entry.Status = pod.Status.PodIP, statusOf(pod)
		}
		entries = append(entries, entry)
		hasEntry[entry.NodeName], isTaken[entry.Index] = true, true
	}
	owners := want.GetOwnerReferences()
	for _, node := range slices.Sorted(maps.Keys(v.daemons)) {
		pod := v.daemons[node]
		if pod == nil {
			continue
		}
		if !hasEntry[node] {
			index := 0 // the lowest that is free, so that the other daemons keep theirs
			for isTaken[index] {
				index++
			}
			if index >= maxDaemonsOf(pod) {
				full = append(full, node)
				continue
			}
			isTaken[index] = true
			entries = append(entries, daemonEntry{NodeName: node, IPAddress: pod.Status.PodIP, CliqueID: id, Index: index, Status: statusOf(pod)})
		}
		if !slices.ContainsFunc(owners, func(owner metav1.OwnerReference) bool { return owner.UID == pod.UID }) {
			owners = append(owners, ownerOf(pod))
		}
	}
	if slices.Equal(before, entries) && len(owners) == len(want.GetOwnerReferences()) {
		return nil, full
	}
	want.SetOwnerReferences(owners)
	want.Object["daemons"] = listOf(entries)
	return want, full
}

func statusOf(pod *corev1.Pod) string {
	if isDaemonReady(pod) {
		return statusReady
	}
	return statusNotReady
}

// listOf returns entries in the form of an unstructured object.
func listOf(entries []daemonEntry) []any {
	list := []any{}
	for _, entry := range entries {
		list = append(list, map[string]any{
			"nodeName": entry.NodeName, "ipAddress": entry.IPAddress, "cliqueID": entry.CliqueID, "index": int64(entry.Index), "status": entry.Status,
		})
	}
	return list
}

// patchOf is a merge patch of the labels of one object, and of no other that has its name later.
func patchOf(uid types.UID, label string, value any) map[string]any {
	return map[string]any{"metadata": map[string]any{"uid": uid, "labels": map[string]any{label: value}}}
}

package computedomains

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
	// daemon is nil if none runs. clique is the one that it belongs to, if any.
	daemon *daemon
	clique cliqueKey
	// label is what domainLabel has to become, if not nil. An empty one is removed.
	label *string
	// labelDaemon says that the daemon has to name its clique in a label of its Pod.
	labelDaemon bool
}

// daemon is a Pod that plays a daemon, and whether the daemon is ready.
type daemon struct {
	pod   *corev1.Pod
	ready bool
}

// planNode plans for a node what its plugin and its daemon write to the Node and to the daemon's Pod.
func planNode(v *nodeView) (plan nodePlan) {
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
				plan.daemon = &daemon{pod, isReady(v.node, pod)}
				if name, err := cliqueName(use.domain, v.node); err == nil && name != "" { // Check reports the error
					plan.clique = cliqueKey{Namespace: pod.Namespace, Name: name}
				}
			}
		}
	}
	// A second ComputeDomain waits until the Pods of the first one have gone.
	if want := append(wanted, "")[0]; !slices.Contains(wanted, current) && want != current && lifecycle.PluginOf(v.node) == lifecycle.PluginUp {
		plan.label = &want
	}
	if plan.daemon != nil {
		named, isNamed := plan.daemon.pod.Labels[cliqueLabel]
		plan.labelDaemon = !isNamed || named != v.node.Labels[fabricLabel]
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

// isReady reports whether the daemon in a Pod is ready: its containers are, and so is its node. The Pod's own condition is
// no help. kube-controller-manager may mark the Pods of a lost node as not ready, and no kubelet marks them as ready when
// the node is back.
func isReady(node *corev1.Node, pod *corev1.Pod) bool {
	return facts.PodCondition(pod, corev1.ContainersReady).Status == corev1.ConditionTrue &&
		slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
			return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
		})
}

// cliqueView is what is known of a clique.
type cliqueView struct {
	key cliqueKey
	// existing is nil if there is no such object.
	existing *clique
	// daemons maps the nodes that this replica acts for to their daemons, or to nil where a node has none in this clique.
	// The entries of other nodes are left alone.
	daemons map[string]*daemon
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
		daemon, isOurs := v.daemons[entry.NodeName]
		switch {
		case !isOurs:
		case daemon == nil:
			continue
		default:
			entry.IPAddress, entry.Status = daemon.pod.Status.PodIP, daemon.status()
		}
		entries = append(entries, entry)
		hasEntry[entry.NodeName], isTaken[entry.Index] = true, true
	}
	owners := want.GetOwnerReferences()
	for _, node := range slices.Sorted(maps.Keys(v.daemons)) {
		daemon := v.daemons[node]
		if daemon == nil {
			continue
		}
		pod := daemon.pod
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
			entries = append(entries, daemonEntry{NodeName: node, IPAddress: pod.Status.PodIP, CliqueID: id, Index: index, Status: daemon.status()})
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

func (d *daemon) status() string {
	if d.ready {
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

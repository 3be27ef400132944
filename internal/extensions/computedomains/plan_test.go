package computedomains

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// tell says what a plan for a node does.
func (p *nodePlan) tell() string {
	var parts []string
	if p.label != nil {
		parts = append(parts, fmt.Sprintf("label=%q", *p.label))
	}
	if p.daemon != nil {
		parts = append(parts, p.daemon.status(), "clique="+p.clique.Name)
	}
	if p.labelDaemon {
		parts = append(parts, "label daemon")
	}
	return strings.Join(parts, " ")
}

// TestPlanNode: a node gets the label of the ComputeDomain that its Pods want a channel of, and its daemon writes what a
// daemon and a kubelet write.
func TestPlanNode(t *testing.T) {
	t.Parallel()
	const wantsLabel, runsDaemon = `label="d1"`, "Ready clique=d1.rack.0"
	worker, other, daemon := newWorker("w", "n"), newWorker("other", "n"), newDaemon("n", "10.0.0.7", corev1.ConditionTrue)
	ended := worker.DeepCopy()
	ended.Status.Phase = corev1.PodSucceeded
	foreign := worker.DeepCopy()
	foreign.Namespace = "elsewhere"
	starting := daemon.DeepCopy()
	starting.Status.PodIP = ""
	stopping := daemon.DeepCopy()
	stopping.DeletionTimestamp = &metav1.Time{}
	named := daemon.DeepCopy()
	named.Labels = map[string]string{cliqueLabel: "rack.0"}
	lost := named.DeepCopy() // as kube-controller-manager leaves the Pods of a node that was not ready
	setReady(lost, corev1.ConditionFalse, corev1.ConditionTrue)
	unready := named.DeepCopy()
	setReady(unready, corev1.ConditionFalse, corev1.ConditionFalse)

	inDomain := func(node *corev1.Node) { node.Labels[domainLabel] = "d1" }
	for name, tc := range map[string]struct {
		node func(node *corev1.Node)
		pods []*corev1.Pod
		want string
	}{
		"nothing":                        {},
		"a Pod with a channel":           {pods: []*corev1.Pod{worker}, want: wantsLabel},
		"labeled already":                {node: inDomain, pods: []*corev1.Pod{worker}},
		"the Pod has ended":              {node: inDomain, pods: []*corev1.Pod{ended}, want: `label=""`},
		"the Pod has gone":               {node: inDomain, want: `label=""`},
		"the domain is another's":        {pods: []*corev1.Pod{foreign}},
		"a second domain waits":          {node: inDomain, pods: []*corev1.Pod{other, worker}},
		"the first domain has gone":      {node: inDomain, pods: []*corev1.Pod{other}, want: `label="d2"`},
		"the plugin has gone":            {node: withoutPlugin, pods: []*corev1.Pod{worker}},
		"the daemon starts":              {node: inDomain, pods: []*corev1.Pod{worker, starting}},
		"the daemon runs":                {node: inDomain, pods: []*corev1.Pod{worker, daemon}, want: runsDaemon + " label daemon"},
		"the daemon has named itself":    {node: inDomain, pods: []*corev1.Pod{worker, named}, want: runsDaemon},
		"the daemon stops":               {node: inDomain, pods: []*corev1.Pod{worker, stopping}},
		"the daemon is not ready":        {node: inDomain, pods: []*corev1.Pod{worker, unready}, want: "Not" + runsDaemon},
		"the node was lost":              {node: inDomain, pods: []*corev1.Pod{worker, lost}, want: runsDaemon},
		"the node is lost":               {node: func(n *corev1.Node) { inDomain(n); n.Status.Conditions = nil }, pods: []*corev1.Pod{worker, named}, want: "Not" + runsDaemon},
		"the node has no fabric":         {node: func(n *corev1.Node) { inDomain(n); delete(n.Labels, fabricLabel) }, pods: []*corev1.Pod{worker, daemon}, want: "Ready clique= label daemon"},
		"the fabric makes no name":       {node: func(n *corev1.Node) { inDomain(n); n.Labels[fabricLabel] = "Rack_1" }, pods: []*corev1.Pod{worker, daemon}, want: "Ready clique= label daemon"},
		"the daemon outlives its domain": {pods: []*corev1.Pod{named}, want: runsDaemon},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := newTray("n", "rack.0")
			if tc.node != nil {
				tc.node(node)
			}
			plan := planNode(&nodeView{
				node: node, pods: tc.pods,
				claims: func(pod *corev1.Pod) map[string]*resourcev1.ResourceClaim {
					kind, domain := channelConfig, "d1"
					if pod.Namespace == driverNamespace {
						kind = daemonConfig
					}
					if pod.Name == other.Name {
						domain = "d2"
					}
					return map[string]*resourcev1.ResourceClaim{"c": newClaim(pod, kind, domain)}
				},
				namespaceOf: func(string) string { return "default" },
			})
			require.Equal(t, tc.want, plan.tell())
		})
	}
}

func withoutPlugin(node *corev1.Node) {
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: v1alpha1.PluginRegistered, Status: corev1.ConditionFalse})
}

// tellClique says what a clique lists: "a=10.0.0.1/0/Ready".
func tellClique(object *unstructured.Unstructured) string {
	if object == nil {
		return "unchanged"
	}
	var parts []string
	for _, entry := range observeClique(object.DeepCopy()).daemons {
		parts = append(parts, fmt.Sprintf("%s=%s/%d/%s", entry.NodeName, entry.IPAddress, entry.Index, entry.Status))
	}
	return strings.Join(parts, " ")
}

// TestPlanClique: a clique lists the daemons of our nodes, each under the index that it got first, and leaves entries of
// others alone. What was planned needs no other plan.
func TestPlanClique(t *testing.T) {
	t.Parallel()
	key := cliqueKey{Namespace: driverNamespace, Name: "d1.rack.0"}
	a, b := &daemon{newDaemon("a", "10.0.0.1", corev1.ConditionTrue), true}, &daemon{newDaemon("b", "10.0.0.2", corev1.ConditionTrue), true}
	c := &daemon{newDaemon("c", "10.0.0.3", corev1.ConditionFalse), false}
	moved, narrow := &daemon{newDaemon("a", "10.0.0.9", corev1.ConditionTrue), true}, &daemon{newDaemon("d", "10.0.0.4", corev1.ConditionTrue), true}
	narrow.pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: maxDaemonsVariable, Value: "3"}}
	for name, tc := range map[string]struct {
		before, daemons map[string]*daemon
		want, full      string
	}{
		"new":                   {daemons: map[string]*daemon{"a": a, "b": b, "c": c}, want: "a=10.0.0.1/0/Ready b=10.0.0.2/1/Ready c=10.0.0.3/2/NotReady"},
		"none":                  {before: map[string]*daemon{"a": a}, daemons: map[string]*daemon{"a": nil}, want: ""},
		"another joins":         {before: map[string]*daemon{"a": a}, daemons: map[string]*daemon{"a": a, "b": b}, want: "a=10.0.0.1/0/Ready b=10.0.0.2/1/Ready"},
		"one of others":         {before: map[string]*daemon{"a": a}, daemons: map[string]*daemon{"b": b}, want: "a=10.0.0.1/0/Ready b=10.0.0.2/1/Ready"},
		"one fills a gap":       {before: map[string]*daemon{"a": a, "b": b}, daemons: map[string]*daemon{"a": nil, "b": b, "c": c}, want: "b=10.0.0.2/1/Ready c=10.0.0.3/0/NotReady"},
		"a Pod is replaced":     {before: map[string]*daemon{"a": a, "b": b}, daemons: map[string]*daemon{"a": moved, "b": b}, want: "a=10.0.0.9/0/Ready b=10.0.0.2/1/Ready"},
		"nothing changes":       {before: map[string]*daemon{"a": a, "b": b}, daemons: map[string]*daemon{"a": a, "b": b}, want: "unchanged"},
		"full":                  {before: map[string]*daemon{"a": a, "b": b, "c": c}, daemons: map[string]*daemon{"d": narrow}, want: "unchanged", full: "d"},
		"full until one leaves": {before: map[string]*daemon{"a": a, "b": b, "c": c}, daemons: map[string]*daemon{"b": nil, "d": narrow}, want: "a=10.0.0.1/0/Ready c=10.0.0.3/2/NotReady d=10.0.0.4/1/Ready"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			view := &cliqueView{key: key, daemons: tc.before}
			if tc.before != nil {
				object, full := planClique(view)
				require.Empty(t, full)
				view.existing = observeClique(object)
			}
			view.daemons = tc.daemons
			want, full := planClique(view)
			require.Equal(t, tc.want, tellClique(want))
			require.Equal(t, tc.full, strings.Join(full, " "))
			if want == nil {
				return
			}
			require.Equal(t, map[string]string{domainLabel: "d1", cliqueLabel: "rack.0"}, want.GetLabels())
			for _, daemon := range tc.daemons {
				if daemon != nil {
					require.Contains(t, want.GetOwnerReferences(), ownerOf(daemon.pod))
				}
			}
			view.existing = observeClique(want)
			again, _ := planClique(view)
			require.Nil(t, again)
		})
	}
}

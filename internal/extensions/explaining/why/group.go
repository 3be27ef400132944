package why

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kwok-dra/kwok-dra/internal/extensions/util/natural"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// Group is a group of Pods of one namespace and owner that wait for the same.
type Group struct {
	// Answer is that of the first.
	Answer

	// Pods are their names, and PodNodes the nodes on which they are.
	Pods     []string `json:"pods"`
	PodNodes []string `json:"podNodes,omitempty"`
}

// Groups groups answers that are alike, in the order of their Pods.
func Groups(answers []*Answer) []*Group {
	answers = slices.SortedStableFunc(slices.Values(answers), func(a, b *Answer) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), natural.Compare(a.Pod, b.Pod))
	})
	all := []*Group{}
	known := map[string]*Group{}
	for _, a := range answers {
		alike := strings.Join([]string{a.Namespace, a.Owner, string(a.State), a.withoutNames()}, "\n")
		group := known[alike]
		if group == nil {
			group = &Group{Answer: *a}
			known[alike] = group
			all = append(all, group)
		}
		group.Pods = append(group.Pods, a.Pod)
		if a.Node != "" && !slices.Contains(group.PodNodes, a.Node) {
			group.PodNodes = append(group.PodNodes, a.Node)
		}
	}
	return all
}

// uids matches the UID of an object.
var uids = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// withoutNames returns the reason without what each Pod has of its own: its claims, its name and
// UID, its node, and the UIDs of claims.
func (a *Answer) withoutNames() string {
	var names []string
	for i, key := range facts.ClaimKeys(a.pod) {
		names = append(names, key.Name, fmt.Sprintf("claim-%d", i))
	}
	for i := range a.pod.Spec.ResourceClaims { // as claims are called that are still to be made
		names = append(names, a.Pod+"-"+a.pod.Spec.ResourceClaims[i].Name, fmt.Sprintf("claim-%d", i))
	}
	names = append(names, a.Pod, "pod")
	if a.pod.UID != "" {
		names = append(names, string(a.pod.UID), "uid")
	}
	if a.Node != "" {
		names = append(names, a.Node, "node")
	}
	return uids.ReplaceAllString(strings.NewReplacer(names...).Replace(a.Reason), "uid")
}

// Title names the Pods of the group.
func (g *Group) Title() string {
	switch {
	case len(g.Pods) == 1:
		return g.Pods[0]
	case g.Owner != "":
		return fmt.Sprintf("%d Pods of %s", len(g.Pods), g.Owner)
	}
	if len(g.Pods) <= maxNamed {
		return strings.Join(g.Pods, ", ")
	}
	return fmt.Sprintf("%d Pods (%s, ...)", len(g.Pods), strings.Join(g.Pods[:maxNamed], ", "))
}

// maxNamed bounds the Pods that a title names.
const maxNamed = 3

// On names the node of the group, or counts its nodes.
func (g *Group) On() string {
	switch len(g.PodNodes) {
	case 0:
		return "<none>"
	case 1:
		return g.PodNodes[0]
	}
	return fmt.Sprintf("%d nodes", len(g.PodNodes))
}

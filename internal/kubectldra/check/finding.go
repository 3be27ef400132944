package check

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/util/natural"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/usage"
)

// Level says how much a finding matters.
type Level string

// The levels.
const (
	// Problem keeps Pods from running, or devices from being used.
	Problem Level = "problem"
	// Hint may be as it is meant to be.
	Hint Level = "hint"
)

// Finding is something that is wrong, or that may be.
type Finding struct {
	// Check is the name of the check that has found it.
	Check string `json:"check"`
	Level Level  `json:"level"`
	// Object is what the finding is about: a driver and pool, a node, a claim with its namespace, a class.
	Object string `json:"object"`
	// Evidence is what the API says.
	Evidence string `json:"evidence"`
	// Fix is the command that mends it, or that shows more where no command can.
	Fix string `json:"fix"`
}

// World is what could be read of a cluster.
type World struct {
	usage.Objects
	Now time.Time
	// Namespace is that of the claims, or empty for all.
	Namespace string
	// Writers are the field managers of the specs of slices, by the names of slices.
	Writers        map[string][]string
	Classes        []*resourcev1.DeviceClass
	ClaimTemplates []*resourcev1.ResourceClaimTemplate
	Nodes          []*corev1.Node
	// Unseen are the resources that could not be read.
	Unseen map[string]bool

	cluster *usage.Cluster
	pools   []*pool
}

// check looks for one kind of finding.
type check struct {
	name string
	// title is what all findings of the check have in common.
	title string
	// needs are the resources without which the check says nothing.
	needs []string
	find  func(ctx context.Context, w *World) []Finding
}

// checks are all checks, the most important first.
var checks = []check{
	{"incompletePool", "incomplete pools: the scheduler takes no device from them", []string{"resourceslices"}, findIncompletePools},
	{"invalidPool", "pools that contradict themselves: the scheduler takes no device from them", []string{"resourceslices"}, findInvalidPools},
	{"sharedPoolName", "pools of one name on several nodes: only the slices of the newest generation count", []string{"resourceslices"}, findSharedPoolNames},
	{"nodeGone", "pools of nodes that do not exist", []string{"resourceslices", "nodes"}, findGoneNodes},
	{"nodeNotReady", "nodes that are not ready, with devices in use", []string{"nodes", "resourceclaims"}, findNodesNotReady},
	{"deviceGone", "claims with devices that no slice publishes any more", []string{"resourceslices", "resourceclaims"}, findGoneDevices},
	{"staleReservation", "claims reserved for Pods that are gone", []string{"resourceclaims", "pods"}, findStaleReservations},
	{"idleClaim", "claims with devices that nobody uses", []string{"resourceclaims"}, findIdleClaims},
	{"stuckClaim", "claims that are being deleted and do not go", []string{"resourceclaims"}, findStuckClaims},
	{"missingClass", "DeviceClasses that claims name and that do not exist", []string{"resourceclaims", "deviceclasses"}, findMissingClasses},
	{"emptyClass", "DeviceClasses that select no device", []string{"resourceslices", "deviceclasses"}, findEmptyClasses},
	{"taintedDevice", "taints that keep Pods away from devices", []string{"resourceslices"}, findTaints},
	{"idleTaintRule", "DeviceTaintRules that select no device", []string{"resourceslices", "devicetaintrules"}, findIdleRules},
	{"severalWriters", "slices of one driver written by several programs: two drivers may have one name", []string{"resourceslices"}, findSeveralWriters},
	{"staleSlice", "slices of an old generation, which nobody reads", []string{"resourceslices"}, findStaleSlices},
	{"oddDevice", "devices that differ from others of their product", []string{"resourceslices"}, findOddDevices},
	{"unusedClaim", "claims without devices that no Pod names", []string{"resourceclaims", "pods"}, findUnusedClaims},
}

// Check looks at a cluster, and returns what it finds, problems first, and the names of the checks that could not be
// made.
func Check(ctx context.Context, w *World) (findings []Finding, skipped []string) {
	w.cluster = usage.NewCluster(w.Objects)
	w.pools = groupPools(w.Slices)
	for _, c := range checks {
		if slices.ContainsFunc(c.needs, func(resource string) bool { return w.Unseen[resource] }) {
			skipped = append(skipped, c.name)
			continue
		}
		found := c.find(ctx, w)
		for i := range found {
			found[i].Check = c.name
			found[i].Level = cmp.Or(found[i].Level, Problem)
		}
		slices.SortStableFunc(found, func(a, b Finding) int { return natural.Compare(a.Object, b.Object) })
		findings = append(findings, found...)
	}
	slices.SortStableFunc(findings, func(a, b Finding) int { return cmp.Compare(rankOf(a.Level), rankOf(b.Level)) })
	return findings, skipped
}

func rankOf(level Level) int { return slices.Index([]Level{Problem, Hint}, level) }

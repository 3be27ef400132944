package selecting

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/dractl/clusterdevices"
	"github.com/kwok-dra/kwok-dra/internal/dractl/follow"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// Cluster is what the user can see of the devices of a cluster.
type Cluster struct {
	clusterdevices.Objects
	// Labels are those of each node.
	Labels map[string]map[string]string
	// isWithoutSlices says that the user may not list slices: only devices that claims have are known.
	isWithoutSlices bool
}

// ReadCluster reads the cluster. If the user may not list the claims and Pods of all namespaces, it reads those of
// one namespace. With isInventory it keeps no more of the slices than TakeInventory needs.
func ReadCluster(ctx context.Context, reader *reading.Reader, namespace string, isInventory bool) (*Cluster, error) {
	c := &Cluster{Objects: clusterdevices.Objects{BlockIncomplete: true, FailUnhealthy: true}}
	var nodes []*corev1.Node
	var rules []*resourcev1.DeviceTaintRule
	readNamespaced := func(namespace string) []func() error {
		return []func() error{
			func() (err error) { c.Claims, err = reader.Claims(ctx, namespace); return err },
			func() (err error) { c.Pods, err = reader.PodsWithClaims(ctx, namespace); return err },
			func() (err error) {
				c.Failures, err = reader.Events(ctx, namespace, "reason="+clusterdevices.FailedPrepare)
				return err
			},
		}
	}
	err := reading.InParallel(append(readNamespaced(metav1.NamespaceAll),
		func() (err error) {
			if !isInventory {
				c.Slices, err = reader.Slices(ctx)
				return err
			}
			c.Slices, c.Summaries, err = reading.SummarizeSlices(ctx, reader, clusterdevices.Summarize)
			return err
		},
		func() (err error) { nodes, err = reader.Nodes(ctx); return err },
		func() (err error) { rules, err = reader.TaintRules(ctx); return err },
	)...)
	if err == nil && isScoped(reader) {
		err = reading.InParallel(readNamespaced(namespace)...)
	}
	if err != nil {
		return nil, err
	}
	c.addNodes(nodes)
	for _, rule := range rules {
		c.Rules = append(c.Rules, inventory.TaintRuleOf(rule))
	}
	return c, c.noteUnseenSlices(reader, namespace)
}

// isScoped reports whether the user can see one namespace only.
func isScoped(reader *reading.Reader) bool {
	return slices.ContainsFunc(reader.Unseen(), func(u reading.Unseen) bool {
		return u.Namespace == "" && (u.Resource == "resourceclaims" || u.Resource == "pods") && u.IsForbidden
	})
}

func (c *Cluster) addNodes(nodes []*corev1.Node) {
	c.AddReadiness(nodes)
	c.Labels = map[string]map[string]string{}
	for _, node := range nodes {
		c.Labels[node.Name] = node.Labels
	}
}

// noteUnseenSlices fails if neither slices nor claims can be read: then there is no answer.
func (c *Cluster) noteUnseenSlices(reader *reading.Reader, namespace string) error {
	lacks := func(resource, namespace string) *reading.Unseen {
		unseen := reader.Unseen()
		at := slices.IndexFunc(unseen, func(u reading.Unseen) bool { return u.Resource == resource && u.Namespace == namespace })
		if at < 0 {
			return nil
		}
		return &unseen[at]
	}
	unseen := lacks("resourceslices", "")
	c.isWithoutSlices = unseen != nil
	if unseen != nil && lacks("resourceclaims", "") != nil && (!isScoped(reader) || lacks("resourceclaims", namespace) != nil) {
		return errors.New(unseen.Describe())
	}
	return nil
}

// Watch watches what the user can see. Of gives the cluster as it is now.
func Watch(reader *reading.Reader, namespace string) *follow.Live {
	scope := metav1.NamespaceAll
	if isScoped(reader) {
		scope = namespace
	}
	return follow.NewVisible(reader.Client(), scope, func(resource string) bool {
		return slices.ContainsFunc(reader.Unseen(), func(u reading.Unseen) bool {
			isReadOfNamespace := u.Namespace == "" && scope != ""
			return u.Resource == resource && (!isReadOfNamespace || resource == "resourceslices" || resource == "nodes" || resource == "devicetaintrules")
		})
	})
}

// Of is the cluster as it is now.
func Of(l *follow.Live) *Cluster {
	c := &Cluster{Objects: l.Objects(), isWithoutSlices: l.Slices == nil}
	c.BlockIncomplete, c.FailUnhealthy = true, true
	c.addNodes(follow.Current[*corev1.Node](l.Nodes))
	return c
}

// ListDevices returns the devices of the cluster. Without the right to list slices, these are those that claims
// have, of which nothing is known but that.
func (c *Cluster) ListDevices() []clusterdevices.Device {
	all := c.Objects.ListDevices(func(string) bool { return true })
	if !c.isWithoutSlices {
		return all
	}
	for i := range all {
		all[i].State = inventory.Allocated
		for _, claim := range all[i].Claims {
			switch {
			case claim.Failure != "":
				all[i].State = inventory.Failing
			case claim.Prepared && all[i].State != inventory.Failing:
				all[i].State = inventory.Prepared
			}
		}
	}
	return all
}

// AllocationTimes returns the time of the allocation of each claim, by namespace and name, as far as the API keeps
// it: in the claim, or else when the first of its Pods was scheduled.
func (c *Cluster) AllocationTimes() map[string]time.Time {
	scheduled := map[string]time.Time{}
	for _, pod := range c.Pods {
		if condition := facts.PodCondition(pod, corev1.PodScheduled); condition.Status == corev1.ConditionTrue {
			scheduled[pod.Namespace+"/"+pod.Name] = condition.LastTransitionTime.Time
		}
	}
	times := map[string]time.Time{}
	for _, claim := range c.Claims {
		if claim.Status.Allocation == nil {
			continue
		}
		var at time.Time
		if stored := claim.Status.Allocation.AllocationTimestamp; stored != nil {
			at = stored.Time
		} else {
			for _, pod := range clusterdevices.ConsumingPods(claim) {
				if known := scheduled[claim.Namespace+"/"+pod]; !known.IsZero() && (at.IsZero() || known.Before(at)) {
					at = known
				}
			}
		}
		if !at.IsZero() {
			times[claim.Namespace+"/"+claim.Name] = at
		}
	}
	return times
}

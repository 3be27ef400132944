package check

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kwok-dra/kwok-dra/internal/kubectldra/listing"
)

// writingTime is how long a driver may take to write the slices of a pool.
const writingTime = time.Minute

// pool is all slices of one driver and pool name.
type pool struct {
	driver, name string
	// newest are the slices of the newest generation, and old those of the others.
	newest, old []*resourcev1.ResourceSlice
}

func (p *pool) String() string { return p.driver + "/" + p.name }

func (p *pool) generation() int64 { return p.newest[0].Spec.Pool.Generation }

// isOfSeveralNodes reports whether nodes share the name of the pool, which is what its other faults come from.
func (p *pool) isOfSeveralNodes() bool { return len(nodesOf(slices.Concat(p.newest, p.old))) > 1 }

// published is a device, with its slice and pool.
type published struct {
	*resourcev1.Device
	slice *resourcev1.ResourceSlice
	pool  *pool
}

func (d *published) id() string { return d.pool.String() + "/" + d.Name }

// listDevices returns the devices of the newest generation of each pool.
func (w *World) listDevices() []published {
	var all []published
	for _, p := range w.pools {
		for _, slice := range p.newest {
			for i := range slice.Spec.Devices {
				all = append(all, published{&slice.Spec.Devices[i], slice, p})
			}
		}
	}
	return all
}

func groupPools(all []*resourcev1.ResourceSlice) []*pool {
	sorted := slices.SortedFunc(slices.Values(all), func(a, b *resourcev1.ResourceSlice) int {
		return cmp.Or(cmp.Compare(a.Spec.Driver, b.Spec.Driver), cmp.Compare(a.Spec.Pool.Name, b.Spec.Pool.Name),
			cmp.Compare(b.Spec.Pool.Generation, a.Spec.Pool.Generation), cmp.Compare(a.Name, b.Name))
	})
	var pools []*pool
	for _, slice := range sorted {
		last := len(pools) - 1
		if last < 0 || pools[last].driver != slice.Spec.Driver || pools[last].name != slice.Spec.Pool.Name {
			pools, last = append(pools, &pool{driver: slice.Spec.Driver, name: slice.Spec.Pool.Name}), last+1
		}
		p := pools[last]
		if len(p.newest) > 0 && slice.Spec.Pool.Generation < p.generation() {
			p.old = append(p.old, slice)
			continue
		}
		p.newest = append(p.newest, slice)
	}
	return pools
}

// isBeingWritten reports whether the youngest slice of a pool is so young that its driver may still be at it.
func (p *pool) isBeingWritten(now time.Time) bool {
	return slices.ContainsFunc(p.newest, func(slice *resourcev1.ResourceSlice) bool { return now.Sub(slice.CreationTimestamp.Time) < writingTime })
}

func namesOf(all []*resourcev1.ResourceSlice) []string {
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return names
}

func deleteSlices(all []*resourcev1.ResourceSlice) string {
	return "kubectl delete resourceslices " + strings.Join(namesOf(all), " ")
}

func nodeOf(slice *resourcev1.ResourceSlice) string {
	if slice.Spec.NodeName == nil {
		return ""
	}
	return *slice.Spec.NodeName
}

func nodesOf(all []*resourcev1.ResourceSlice) []string {
	nodes := map[string]bool{}
	for _, slice := range all {
		if node := nodeOf(slice); node != "" {
			nodes[node] = true
		}
	}
	return slices.Sorted(maps.Keys(nodes))
}

func findIncompletePools(_ context.Context, w *World) []Finding {
	var findings []Finding
	for _, p := range w.pools {
		count := p.newest[0].Spec.Pool.ResourceSliceCount
		if int64(len(p.newest)) == count || p.isBeingWritten(w.Now) || p.isOfSeveralNodes() {
			continue
		}
		youngest := slices.MaxFunc(p.newest, func(a, b *resourcev1.ResourceSlice) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
		evidence := fmt.Sprintf("generation %d has %d of %d slices: %s; the youngest is %s old", p.generation(), len(p.newest), count,
			strings.Join(namesOf(p.newest), ", "), duration.HumanDuration(w.Now.Sub(youngest.CreationTimestamp.Time)))
		findings = append(findings, Finding{Object: p.String(), Evidence: evidence, Fix: deleteSlices(p.newest) + " # the driver writes the pool anew, if it runs"})
	}
	return findings
}

func findInvalidPools(_ context.Context, w *World) []Finding {
	var findings []Finding
	for _, p := range w.pools {
		if evidence := p.contradictions(); len(evidence) > 0 && !p.isOfSeveralNodes() {
			findings = append(findings, Finding{Object: p.String(), Evidence: strings.Join(evidence, "; "), Fix: deleteSlices(p.newest) + " # the driver writes the pool anew, if it runs"})
		}
	}
	return findings
}

// contradictions says how the slices of a pool differ about its size, and which devices several of them have.
func (p *pool) contradictions() []string {
	holders := map[string]string{}
	var all []string
	first := p.newest[0]
	for _, slice := range p.newest {
		if count := slice.Spec.Pool.ResourceSliceCount; count != first.Spec.Pool.ResourceSliceCount {
			all = append(all, fmt.Sprintf("slice %s says that the pool has %s, and %s says %d", first.Name, listing.Count(int(first.Spec.Pool.ResourceSliceCount), "slice"), slice.Name, count))
		}
		for i := range slice.Spec.Devices {
			name := slice.Spec.Devices[i].Name
			if other, taken := holders[name]; taken {
				all = append(all, fmt.Sprintf("device %s is in slice %s and in slice %s", name, other, slice.Name))
			}
			holders[name] = slice.Name
		}
	}
	return all
}

func findSharedPoolNames(_ context.Context, w *World) []Finding {
	var findings []Finding
	for _, p := range w.pools {
		nodes := nodesOf(slices.Concat(p.newest, p.old))
		if len(nodes) < 2 {
			continue
		}
		var of []string
		for _, node := range nodes {
			var generations []string
			for _, slice := range slices.Concat(p.newest, p.old) {
				if text := fmt.Sprint(slice.Spec.Pool.Generation); nodeOf(slice) == node && !slices.Contains(generations, text) {
					generations = append(generations, text)
				}
			}
			of = append(of, fmt.Sprintf("node %s (generation %s)", node, strings.Join(generations, ", ")))
		}
		evidence := fmt.Sprintf("%s publish it; a pool of a node needs a name of its own, such as that of the node", firstFew(of))
		findings = append(findings, Finding{
			Object: p.String(), Evidence: evidence,
			Fix: "kubectl get resourceslices --field-selector spec.driver=" + p.driver + " # set another pool name in the configuration of the driver",
		})
	}
	return findings
}

func findStaleSlices(_ context.Context, w *World) []Finding {
	var findings []Finding
	for _, p := range w.pools {
		if len(p.old) == 0 || p.isBeingWritten(w.Now) || p.isOfSeveralNodes() {
			continue
		}
		var of []string
		for _, slice := range p.old {
			of = append(of, fmt.Sprintf("%s (generation %d)", slice.Name, slice.Spec.Pool.Generation))
		}
		evidence := fmt.Sprintf("the newest generation is %d, and there is %s", p.generation(), firstFew(of))
		findings = append(findings, Finding{Level: Hint, Object: p.String(), Evidence: evidence, Fix: deleteSlices(p.old)})
	}
	return findings
}

// writersOf returns the field managers of the slices of a pool.
func (w *World) writersOf(p *pool) []string {
	writers := map[string]bool{}
	for _, slice := range p.newest {
		for _, writer := range w.Writers[slice.Name] {
			writers[writer] = true
		}
	}
	return slices.Sorted(maps.Keys(writers))
}

// findSeveralWriters compares the field managers of the slices of a driver's nodes, and of the slices of each pool. A
// driver may have one program for its nodes and another for pools of the network.
func findSeveralWriters(_ context.Context, w *World) []Finding {
	nodesBy := map[string]map[string][]string{}
	mixed := map[string][]string{}
	for _, p := range w.pools {
		switch names := w.writersOf(p); {
		case len(names) > 1:
			mixed[p.driver] = append(mixed[p.driver], fmt.Sprintf("pool %s by %s", p.name, strings.Join(names, " and ")))
		case len(names) == 1 && nodeOf(p.newest[0]) != "":
			if nodesBy[p.driver] == nil {
				nodesBy[p.driver] = map[string][]string{}
			}
			nodesBy[p.driver][names[0]] = append(nodesBy[p.driver][names[0]], nodeOf(p.newest[0]))
		}
	}
	for driver, byWriter := range nodesBy {
		if len(byWriter) < 2 {
			continue
		}
		for _, writer := range slices.Sorted(maps.Keys(byWriter)) {
			mixed[driver] = append(mixed[driver], fmt.Sprintf("the pools of %s by %s", firstFew(byWriter[writer]), writer))
		}
	}
	var findings []Finding
	for driver, evidence := range mixed {
		findings = append(findings, Finding{
			Level: Hint, Object: driver, Evidence: "the managed fields say who wrote: " + strings.Join(evidence, "; "),
			Fix: "kubectl get resourceslices --field-selector spec.driver=" + driver + " -o yaml --show-managed-fields",
		})
	}
	return findings
}

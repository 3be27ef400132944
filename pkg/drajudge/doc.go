// Package drajudge judges from the outside whether a scheduler keeps the rules of dynamic resource
// allocation. It needs only the history of a cluster: the watch events of ResourceSlices, ResourceClaims,
// Pods, DeviceClasses, Nodes, Namespaces, ResourceQuotas and DeviceTaintRules, or an audit log. The rules are
// its own code; it takes from upstream only the evaluation of CEL, and AtRest asks upstream's allocator and
// a search of its own whether a waiting Pod fits.
//
//	history, err := drajudge.ReadWatch(file)
//	// ...
//	for _, violation := range drajudge.Judge(ctx, history, drajudge.Options{}) {
//		fmt.Println(violation)
//	}
//
// Statements lists the rules. An Observer judges event by event, and judges what must hold at rest.
//
// An allocation is judged by the slices, classes, taint rules, nodes and namespaces of the moment in which it
// is written; a later change of these is no violation. A claim that is first seen with an allocation counts
// as its owner, but its allocation is not judged, since its moment is unknown. So a history may start with a
// list of the objects that existed.
//
// Its maturity is alpha; docs/reference/stability.md says what may change.
package drajudge

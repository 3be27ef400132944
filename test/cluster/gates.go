package cluster

import (
	"context"
	"slices"
	"strings"
)

const featureGatesFlag = "--feature-gates="

// controlPlane are the components that have the cluster's feature gates.
var controlPlane = []string{APIServer, ControllerManager, Scheduler}

// SetFeatureGates starts kube-apiserver, kube-controller-manager and
// kube-scheduler again with other feature gates, in place of all that are in
// force, and returns when the cluster serves. What is stored stays, as with an
// administrator who switches a gate.
func (c *Cluster) SetFeatureGates(ctx context.Context, gates map[string]bool) error {
	c.gates = &gates
	for _, name := range slices.Backward(controlPlane) {
		if c.options.isDisabled(name) {
			continue
		}
		if err := c.StopComponent(ctx, name); err != nil {
			return err
		}
	}
	if err := c.StartComponent(ctx, APIServer); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return c.waitReady(ctx)
}

// withFeatureGates is a component with the feature gates that are in force, which are not
// those of its first start for ever.
func (r *runner) withFeatureGates(p component) component {
	if r.gates == nil || !slices.Contains(controlPlane, p.Name) {
		return p
	}
	p.Args = slices.DeleteFunc(slices.Clone(p.Args), func(arg string) bool { return strings.HasPrefix(arg, featureGatesFlag) })
	if len(*r.gates) > 0 {
		p.Args = append(p.Args, featureGatesFlag+formatSwitches(*r.gates))
	}
	return p
}

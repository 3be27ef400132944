package slices

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/pkg/devices"
)

// Published reports whether a driver has slices on a node, or in a pool that the
// node shares, by what the cache says.
func (p *Publisher) Published(node, driver string) bool {
	if p.publishedIn(nodeScope(node), driver) {
		return true
	}
	set, object := p.config.Current(), p.nodes.Get(node)
	return set != nil && object != nil && slices.ContainsFunc(set.Shared(), func(t *devices.Template) bool {
		return t.Driver == driver && t.Selects(object) && p.publishedIn(sharedScope(t), driver)
	})
}

func (p *Publisher) publishedIn(of scope, driver string) bool {
	return p.anyIn(of, func(o *Observed) bool { return o.Driver == driver })
}

// PublishedDevice reports whether a device is in a slice of ours, on a node or in a
// pool that nodes share, by what the cache says.
func (p *Publisher) PublishedDevice(node string, result *resourcev1.DeviceRequestAllocationResult) bool {
	has := func(o *Observed) bool {
		return o.Driver == result.Driver && o.Pool.Name == result.Pool && slices.Contains(o.Names.List(), result.Device)
	}
	return p.anyIn(nodeScope(node), has) || p.anyIn(scope{driver: result.Driver, pool: result.Pool}, has)
}

func (p *Publisher) anyIn(of scope, is func(*Observed) bool) bool {
	existing, err := p.existing(of)
	return err == nil && slices.ContainsFunc(existing, is)
}

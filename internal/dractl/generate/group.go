package generate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
)

// group are the nodes on which a driver publishes alike, so that one template
// for each pool does for all of them.
type group struct {
	driver  string
	members []*member
}

// groupMembers puts the members of a driver into groups. Where some nodes share the
// values of an attribute that differ from those of others, such as the product,
// they are groups of their own; where each node has its own, such as serial
// numbers, they are not.
func groupMembers(driver string, members []*member) ([]*group, error) {
	byShape, err := partitionMembers(members, (*member).encodeShape)
	if err != nil {
		return nil, err
	}
	var groups []*group
	for _, alike := range byShape {
		telling := distinctiveAttributes(alike)
		split, err := partitionMembers(alike, func(m *member) (string, error) {
			var text strings.Builder
			for _, at := range telling {
				fmt.Fprintf(&text, "%q", m.attributeVector(at))
			}
			return text.String(), nil
		})
		if err != nil {
			return nil, err
		}
		for _, members := range split {
			groups = append(groups, &group{driver: driver, members: members})
		}
	}
	return groups, nil
}

// partitionMembers puts members with the same key together, in the order of the first of
// each.
func partitionMembers(members []*member, key func(*member) (string, error)) ([][]*member, error) {
	var parts [][]*member
	index := map[string]int{}
	for _, m := range members {
		k, err := key(m)
		if err != nil {
			return nil, err
		}
		at, known := index[k]
		if !known {
			at, index[k] = len(parts), len(parts)
			parts = append(parts, nil)
		}
		parts[at] = append(parts[at], m)
	}
	return parts, nil
}

// location is an attribute of the devices of a pool, by the pool's number.
type location struct {
	pool int
	name resourcev1.QualifiedName
}

// attributeVector are the values of an attribute of all devices that have it, without the
// name of the node.
func (m *member) attributeVector(at location) []string {
	var all []string
	for _, device := range m.pools[at.pool].listDevices() {
		if attribute, has := device.Attributes[at.name]; has {
			_, values := attributeValues(attribute)
			for _, value := range values {
				all = append(all, m.withoutNodeName(value))
			}
		}
	}
	return all
}

// distinctiveAttributes are those whose values at least two nodes share on average,
// and not all: they tell kinds of nodes apart.
func distinctiveAttributes(members []*member) []location {
	var telling []location
	all := map[location]bool{}
	for i, p := range members[0].pools {
		for _, device := range p.listDevices() {
			for name := range device.Attributes {
				all[location{i, name}] = true
			}
		}
	}
	byPool := func(a, b location) int { return cmp.Or(cmp.Compare(a.pool, b.pool), cmp.Compare(a.name, b.name)) }
	for _, at := range slices.SortedFunc(maps.Keys(all), byPool) {
		distinct := map[string]bool{}
		for _, m := range members {
			distinct[fmt.Sprintf("%q", m.attributeVector(at))] = true
		}
		if len(distinct) > 1 && 2*len(distinct) <= len(members) {
			telling = append(telling, at)
		}
	}
	return telling
}

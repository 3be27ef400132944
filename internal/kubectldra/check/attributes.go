package check

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
)

// commonShare is the part of a product's devices that has to have the same value, for another value to be odd.
const commonShare = 0.75

// absent is the value of an attribute that a device does not have.
const absent = "(absent)"

// productDevices are all devices of a driver's product.
type productDevices struct {
	driver, product string
	ids             []string
	// pools are those of the devices, and values their attributes and capacities.
	pools  []*pool
	values []map[string]string
}

// findOddDevices finds devices whose attributes or capacities are not those of their product. What differs within most
// pools, such as an index, is of a device, and what has many values, such as a rack, is of a place.
func findOddDevices(_ context.Context, w *World) []Finding {
	var findings []Finding
	for _, of := range w.groupProducts() {
		names := map[string]bool{}
		for _, values := range of.values {
			for name := range values {
				names[name] = true
			}
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			common, odd := of.oddValues(name)
			if len(odd) == 0 {
				continue
			}
			var texts []string
			for _, value := range slices.Sorted(maps.Keys(odd)) {
				texts = append(texts, fmt.Sprintf("%s on %s", value, firstFew(odd[value])))
			}
			findings = append(findings, Finding{
				Level: Hint, Object: of.driver + " " + of.product,
				Evidence: fmt.Sprintf("%s is %s, but %s", name, common, strings.Join(texts, ", and ")),
				Fix:      "kubectl get resourceslices --field-selector spec.driver=" + of.driver + " -o yaml",
			})
		}
	}
	return findings
}

func (w *World) groupProducts() []*productDevices {
	known := map[[2]string]*productDevices{}
	var all []*productDevices
	for _, device := range w.listDevices() {
		p := device.pool
		described := inventory.Describe(p.driver, device.Device, nil)
		if described.Product == "" {
			continue
		}
		key := [2]string{p.driver, described.Product}
		if known[key] == nil {
			known[key] = &productDevices{driver: p.driver, product: described.Product}
			all = append(all, known[key])
		}
		of := known[key]
		values := described.Attributes
		for name, quantity := range described.Capacity {
			values["capacity "+name] = quantity
		}
		of.ids, of.pools, of.values = append(of.ids, device.id()), append(of.pools, p), append(of.values, values)
	}
	return all
}

// oddValues returns the value of an attribute that the product has, and the devices that have others, by their values.
func (d *productDevices) oddValues(name string) (common string, odd map[string][]string) {
	devices := map[string][]string{}
	byPool := map[*pool]map[string]bool{}
	for i, values := range d.values {
		value, has := values[name]
		if !has {
			value = absent
		}
		devices[value] = append(devices[value], d.ids[i])
		if byPool[d.pools[i]] == nil {
			byPool[d.pools[i]] = map[string]bool{}
		}
		byPool[d.pools[i]][value] = true
	}
	mixed := 0
	for _, values := range byPool {
		mixed += min(len(values)-1, 1)
	}
	for value, of := range devices {
		if float64(len(of)) >= commonShare*float64(len(d.ids)) {
			common = value
		}
	}
	if common == "" || len(devices) == 1 || len(byPool) > 1 && 2*mixed > len(byPool) {
		return "", nil
	}
	delete(devices, common)
	return common, devices
}

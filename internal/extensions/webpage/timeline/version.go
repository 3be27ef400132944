package timeline

import (
	"iter"
	"slices"
	"strconv"
	"strings"
	"unique"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
)

// version is what a pool was like for a while.
type version struct {
	// names are those of all devices. Most pools of a fleet have the same.
	names unique.Handle[string]
	// devices has a line for each device, but for those that are free and that no claim
	// has: its index, its state and its claims. In a change that left the names as they
	// were, it has a line for each device that differs.
	devices                   string
	kind                      string
	usage                     inventory.Usage
	generation, slices, count int64
}

// between is in no name of a device, which is a DNS label.
const between = " "

func newVersion(pool *inventory.Pool) *version {
	return &version{
		names: unique.Make(string(appendNames(nil, pool.Devices))), devices: string(appendTaken(nil, pool.Devices)),
		kind: pool.Kind, usage: pool.Usage, generation: pool.Generation, slices: pool.Slices, count: pool.SliceCount,
	}
}

// describesPool reports whether a pool is as the version says.
func (v *version) describesPool(pool *inventory.Pool) bool {
	var room [1 << 10]byte
	return v.kind == pool.Kind && v.usage == pool.Usage && v.generation == pool.Generation && v.slices == pool.Slices && v.count == pool.SliceCount &&
		string(appendTaken(room[:0], pool.Devices)) == v.devices && string(appendNames(room[:0], pool.Devices)) == v.names.Value()
}

// reduceTo returns what has to be remembered of a version, or nil, to rebuild it from the next one.
func (v *version) reduceTo(next *version) *version {
	if v == nil || v.names != next.names {
		return v
	}
	before, after := v.listDevices(), next.listDevices()
	var differ []byte
	for i := range before {
		if !isSameDevice(&before[i], &after[i]) {
			differ = appendDevice(differ, i, &before[i])
		}
	}
	reduced := *v
	reduced.devices = string(differ)
	return &reduced
}

// isSameDevice reports whether two devices are equal in what is remembered.
func isSameDevice(a, b *inventory.Device) bool {
	return a.Name == b.Name && a.State == b.State && slices.EqualFunc(a.Claims, b.Claims, func(a, b inventory.Claim) bool {
		return a.Namespace == b.Namespace && a.Name == b.Name && a.Prepared == b.Prepared && a.AdminAccess == b.AdminAccess
	})
}

// listDevices decodes the devices.
func (v *version) listDevices() []inventory.Device {
	var devices []inventory.Device
	names := v.names.Value()
	for names != "" {
		name, rest, _ := strings.Cut(names, between)
		devices, names = append(devices, inventory.Device{Name: name}), rest
	}
	for i, device := range v.deviceLines() {
		devices[i].State, devices[i].Claims = device.State, device.Claims
	}
	return devices
}

// deviceLines yields the devices that have a line, with their indices and without names.
func (v *version) deviceLines() iter.Seq2[int, inventory.Device] {
	return func(yield func(int, inventory.Device) bool) {
		for line := range strings.Lines(v.devices) {
			if i, device := parseDevice(line); !yield(i, device) {
				return
			}
		}
	}
}

func appendNames(b []byte, devices []inventory.Device) []byte {
	for i := range devices {
		b = append(append(b, devices[i].Name...), between...)
	}
	return b
}

func appendTaken(b []byte, devices []inventory.Device) []byte {
	for i := range devices {
		if devices[i].State != inventory.Free || len(devices[i].Claims) > 0 {
			b = appendDevice(b, i, &devices[i])
		}
	}
	return b
}

// What marks a claim before its name.
const (
	prepared = "+"
	admin    = "*"
)

func appendDevice(b []byte, index int, device *inventory.Device) []byte {
	b = append(strconv.AppendInt(b, int64(index), 10), ' ')
	b = strconv.AppendInt(b, int64(device.State), 10)
	for i := range device.Claims {
		claim := &device.Claims[i]
		b = append(b, ' ')
		if claim.Prepared {
			b = append(b, prepared...)
		}
		if claim.AdminAccess {
			b = append(b, admin...)
		}
		b = append(append(append(b, claim.Namespace...), '/'), claim.Name...)
	}
	return append(b, '\n')
}

// parseDevice decodes a line of appendDevice.
func parseDevice(line string) (index int, device inventory.Device) {
	fields := strings.Fields(line)
	index, _ = strconv.Atoi(fields[0])
	state, _ := strconv.Atoi(fields[1])
	device.State = inventory.State(state)
	for _, name := range fields[2:] {
		var claim inventory.Claim
		name, claim.Prepared = strings.CutPrefix(name, prepared)
		name, claim.AdminAccess = strings.CutPrefix(name, admin)
		claim.Namespace, claim.Name, _ = strings.Cut(name, "/")
		device.Claims = append(device.Claims, claim)
	}
	return index, device
}

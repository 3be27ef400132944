package selecting

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kwok-dra/kwok-dra/internal/dractl/clusterdevices"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
	"github.com/kwok-dra/kwok-dra/internal/util/suggest"
)

// Flags select devices.
type Flags struct {
	drivers, nodes, states, attributes []string
	labels                             string

	selector     labels.Selector
	requirements []requirement
	chosen       []inventory.State
}

// AddTo adds flags that select by the nodes and drivers of devices.
func (f *Flags) AddTo(command *cobra.Command, reach *reading.Flags) {
	flags := command.Flags()
	flags.StringSliceVar(&f.drivers, "driver", nil, "Select devices of these drivers.")
	flags.StringSliceVar(&f.nodes, "node", nil, "Select devices of these nodes.")
	flags.StringVarP(&f.labels, "selector", "l", "", "Selector (label query) to filter on the labels of nodes, as kubectl get nodes -l has it.")
	// It fails only for a flag that does not exist.
	_ = command.RegisterFlagCompletionFunc("node", reach.CompleteNames("nodes"))
}

// AddDeviceFlagsTo adds flags that select by what devices are and by their state.
func (f *Flags) AddDeviceFlagsTo(command *cobra.Command) {
	command.Flags().StringArrayVar(&f.attributes, "attribute", nil, "Select devices by an attribute: NAME=VALUE, NAME!=VALUE, or NAME. NAME is with or without its domain, VALUE may have *. Give several to require all.")
	names := stateNames()
	command.Flags().StringSliceVar(&f.states, "state", nil, "Select devices in one of these states: "+strings.Join(names, ", ")+".")
	// It fails only for a flag that does not exist.
	_ = command.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
}

// The states that stand for several.
const (
	inUse     = "in-use"
	unhealthy = "unhealthy"
)

func stateNames() []string {
	var names []string
	for state := range inventory.Gone + 1 {
		names = append(names, state.String())
	}
	return append(names, inUse, unhealthy)
}

// Parse says what is wrong with the flags, if anything.
func (f *Flags) Parse() error {
	var err error
	if f.selector, err = labels.Parse(f.labels); err != nil {
		return fmt.Errorf("parse -l %q: %w: write it as kubectl get nodes -l has it, such as key=value", f.labels, err)
	}
	for _, text := range f.attributes {
		parsed, err := parseRequirement(text)
		if err != nil {
			return err
		}
		f.requirements = append(f.requirements, parsed)
	}
	for _, text := range f.states {
		name, known := strings.ToLower(strings.TrimSpace(text)), stateNames()
		switch at := slices.Index(known, name); {
		case name == inUse:
			f.chosen = append(f.chosen, inventory.Allocated, inventory.Prepared)
		case name == unhealthy:
			f.chosen = append(f.chosen, inventory.Failing, inventory.Tainted, inventory.Gone)
		case at < 0:
			return fmt.Errorf("parse --state %q: it is one of %s", text, strings.Join(known, ", "))
		default:
			f.chosen = append(f.chosen, inventory.State(at))
		}
	}
	return nil
}

// ChoosesNode reports whether a node is selected. Its name is empty for what nodes share.
func (f *Flags) ChoosesNode(c *Cluster, node string) bool {
	return (len(f.nodes) == 0 || slices.Contains(f.nodes, node)) && (f.selector.Empty() || node != "" && f.selector.Matches(labels.Set(c.Labels[node])))
}

// ChoosesPool reports whether the pools of a driver on a node are selected.
func (f *Flags) ChoosesPool(c *Cluster, node, driver string) bool {
	return f.ChoosesNode(c, node) && (len(f.drivers) == 0 || slices.Contains(f.drivers, driver))
}

// ChoosesDevice reports whether a device is selected.
func (f *Flags) ChoosesDevice(c *Cluster, device *clusterdevices.Device) bool {
	if len(f.chosen) > 0 && !slices.Contains(f.chosen, device.State) {
		return false
	}
	for _, required := range f.requirements {
		if !required.accepts(device) {
			return false
		}
	}
	return f.ChoosesPool(c, device.Node, device.Driver)
}

// DescribeNothing says why no device is selected.
func (f *Flags) DescribeNothing(c *Cluster) string {
	if len(c.Slices) == 0 && !c.isWithoutSlices {
		return "No DRA driver has published a device: there is no ResourceSlice"
	}
	var drivers []string
	for _, slice := range c.Slices {
		drivers = append(drivers, slice.Spec.Driver)
	}
	for _, driver := range f.drivers {
		if nearest := suggest.Nearest(driver, drivers); !slices.Contains(drivers, driver) && nearest != "" {
			return fmt.Sprintf("No driver %s has published a device: did you mean %s?", driver, nearest)
		}
	}
	for _, required := range f.requirements {
		if !slices.ContainsFunc(c.ListDevices(), func(d clusterdevices.Device) bool { return required.valueOf(&d) != "" }) {
			return fmt.Sprintf("No device has an attribute %s: kubectl dra devices -o wide shows all", required.name)
		}
	}
	return "No device is selected"
}

// requirement is what an attribute of a device must be.
type requirement struct {
	name, value     string
	isAny, isUnlike bool
}

func parseRequirement(text string) (requirement, error) {
	name, value, hasValue := strings.Cut(text, "=")
	r := requirement{name: strings.TrimSuffix(name, "!"), value: value, isAny: !hasValue, isUnlike: strings.HasSuffix(name, "!")}
	if r.name == "" || r.isAny && r.isUnlike {
		return r, fmt.Errorf("parse --attribute %q: write NAME=VALUE, NAME!=VALUE or NAME, such as model=*H100*", text)
	}
	return r, nil
}

// valueOf is the value of the attribute, or of the capacity of that name.
func (r requirement) valueOf(device *clusterdevices.Device) string {
	if value := clusterdevices.AttributeOf(device.Driver, device.Attributes, r.name); value != "" {
		return value
	}
	return clusterdevices.AttributeOf(device.Driver, device.Capacity, r.name)
}

func (r requirement) accepts(device *clusterdevices.Device) bool {
	value := r.valueOf(device)
	if r.isAny {
		return value != ""
	}
	return MatchesPattern(value, r.value) != r.isUnlike
}

// MatchesPattern reports whether a text is a pattern, in which * stands for anything.
func MatchesPattern(text, pattern string) bool {
	before, rest, hasAny := strings.Cut(pattern, "*")
	if !hasAny {
		return text == pattern
	}
	text, found := strings.CutPrefix(text, before)
	if !found {
		return false
	}
	for begin := 0; begin <= len(text); begin++ {
		if MatchesPattern(text[begin:], rest) {
			return true
		}
	}
	return false
}

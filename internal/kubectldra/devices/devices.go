package devices

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kwok-dra/kwok-dra/internal/dractl/clusterdevices"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/selecting"
)

// New makes the command.
func New(reach *reading.Flags, streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use:     "devices [NAME ...]",
		Aliases: []string{"device"},
		Short:   "Show each device: its state, and which Pod has it since when.",
		Long: `Show each device: its state, and which Pod has it since when.

NAME is the name of a device, POOL/DEVICE, DRIVER/POOL/DEVICE as in events of the
scheduler, or the UUID of a device. A name may have *.

A device is in one state, the first that applies: tainted (NoSchedule or NoExecute, by
its driver or a DeviceTaintRule), failing (preparing it fails, or its driver says that
it is not ready), prepared (for the Pod), allocated (a claim has it), blocked (no claim
can get it: others have its counters or capacity, or its node is not Ready), free. A
device that a claim has and no slice publishes any more is gone. Parts of a device,
which draw on the same counters, are below it.

SINCE is how long the claim has the device, or how long the device is tainted. It is
<unknown> where the API server does not keep it.`,
		Example: `  # Which Pod has which device?
  kubectl dra devices --state in-use

  # Free H100s of a node pool
  kubectl dra devices --state free --attribute 'productName=*H100*' -l cloud.google.com/gke-nodepool=a3

  # What is wrong with the devices of a node, with all attributes
  kubectl dra devices --node gpu-node-1 --state unhealthy -o wide

  # Which Pod has this device?
  kubectl dra devices GPU-18db0e85-99e9-c746-8531-ffeb86328b39`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	q := selecting.NewQuestion(command, reach, streams)
	q.AddDeviceFlagsTo(command)
	var columns []string
	command.Flags().StringSliceVarP(&columns, "attribute-columns", "L", nil, "Attributes to show as columns, with or without their domain.")
	q.Ask(command, func(c *selecting.Cluster, names []string) *selecting.Answer {
		return chooseDevices(c, &q.Flags, names, columns, time.Now())
	})
	return command
}

// Device is a device as programs see it.
type Device struct {
	// Node is left out for a device that nodes share.
	Node string `json:"node,omitempty"`
	clusterdevices.Device
	// Since is when the first claim got the device, or when it was tainted.
	Since *time.Time `json:"since,omitempty"`
	// Reason says why the device cannot be used, if so.
	Reason string `json:"reason,omitempty"`
}

// ResourceName is the name that the command reads.
func (d Device) ResourceName() string { return d.Driver + "/" + d.Pool + "/" + d.Name }

func chooseDevices(c *selecting.Cluster, chosen *selecting.Flags, names, columns []string, now time.Time) *selecting.Answer {
	times := c.AllocationTimes()
	var found []Device
	for _, device := range c.ListDevices() {
		if chosen.ChoosesDevice(c, &device) && (len(names) == 0 || slices.ContainsFunc(names, func(name string) bool { return isNamed(&device, name) })) {
			found = append(found, Device{device.Node, device, sinceWhen(&device, times), device.UnusableReason()})
		}
	}
	if len(found) == 0 {
		headline := chosen.DescribeNothing(c)
		if len(names) > 0 {
			headline = "No device is named " + strings.Join(names, " or ")
		}
		return &selecting.Answer{Headline: headline}
	}
	a := &selecting.Answer{Headline: describeFound(found), Tables: output.Tables{newTable(found, columns, now)}}
	for _, device := range found {
		a.Objects = append(a.Objects, device)
	}
	return a
}

// isNamed reports whether a user's name means a device.
func isNamed(device *clusterdevices.Device, name string) bool {
	return slices.ContainsFunc([]string{device.Name, device.Pool + "/" + device.Name, device.Driver + "/" + device.Pool + "/" + device.Name, device.UUID}, func(own string) bool {
		return own != "" && selecting.MatchesPattern(own, name)
	})
}

// sinceWhen returns when the device got its state, as far as the API server keeps it.
func sinceWhen(device *clusterdevices.Device, allocated map[string]time.Time) *time.Time {
	var first time.Time
	note := func(at time.Time) {
		if !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if device.State == inventory.Tainted {
		for _, taint := range device.Taints {
			note(taint.TimeAdded)
		}
	} else {
		for _, claim := range device.Claims {
			note(allocated[claim.Namespace+"/"+claim.Name])
		}
	}
	if first.IsZero() {
		return nil
	}
	return &first
}

// describeFound counts the devices by what can be done with them.
func describeFound(found []Device) string {
	var counts inventory.Counts
	gone := 0
	for i := range found {
		if found[i].State == inventory.Gone {
			gone++
			continue
		}
		counts[found[i].State]++
	}
	return selecting.DescribeCounts(&counts, gone)
}

func newTable(found []Device, columns []string, now time.Time) *output.Rows {
	has := func(is func(*Device) bool) bool {
		return slices.ContainsFunc(found, func(d Device) bool { return is(&d) })
	}
	rows := &output.Rows{Columns: []output.Column{
		{Name: "node"},
		{Name: "driver", Wide: !has(func(d *Device) bool { return d.Driver != found[0].Driver }), Spare: 5},
		{Name: "pool", Wide: !has(func(d *Device) bool { return d.Pool != d.Node }), Spare: 4},
		{Name: "device"},
		{Name: "state"},
		{Name: "since", Spare: 2},
		{Name: "used", Wide: !has(func(d *Device) bool { return d.Shared }), Spare: 1},
		{Name: "product", Spare: 1},
		{Name: "memory", Wide: true},
		{Name: "uuid", Wide: true},
		{Name: "claim", Spare: 3},
		{Name: "pod"},
	}}
	for _, name := range columns {
		rows.Columns = append(rows.Columns, output.Column{Name: name[strings.LastIndexByte(name, '/')+1:]})
	}
	rows.Columns = append(rows.Columns, output.Column{Name: "reason", Wide: !has(func(d *Device) bool { return d.Reason != "" })}, output.Column{Name: "attributes", Wide: true})
	for i := range found {
		d := &found[i]
		claims, pods := clusterdevices.ClaimsAndPods(d.Claims)
		name, used := d.Name, ""
		if d.Whole != "" {
			name = "  " + name
		}
		if d.Shared {
			used = output.Percent(float64(d.Used))
		}
		since := output.None
		switch {
		case d.Since != nil:
			since = duration.HumanDuration(now.Sub(*d.Since))
		case len(d.Claims) > 0 || d.State == inventory.Tainted:
			since = "<unknown>"
		}
		cells := []string{
			cmp.Or(d.Node, "<shared>"), d.Driver, d.Pool, name, d.State.String(), since, output.OrNone(used), output.OrNone(d.Product),
			output.OrNone(d.Memory), output.OrNone(d.UUID), output.OrNone(claims...), output.OrNone(pods...),
		}
		for _, attribute := range columns {
			cells = append(cells, output.OrNone(clusterdevices.AttributeOf(d.Driver, d.Attributes, attribute)))
		}
		var all []string
		for _, attribute := range slices.Sorted(maps.Keys(d.Attributes)) {
			all = append(all, attribute+"="+d.Attributes[attribute])
		}
		rows.Add(append(cells, output.OrNone(d.Reason), output.OrNone(all...))...)
		if selecting.IsUnhealthy(d.State) {
			rows.Mark()
		}
	}
	return rows
}

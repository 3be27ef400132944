package nodes

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/clusterdevices"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/selecting"
)

// New makes the command.
func New(reach *reading.Flags, streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use:     "nodes [NAME ...]",
		Aliases: []string{"node"},
		Short:   "Show the devices of each node by product, and which Pods have them.",
		Long: `Show the devices of each node by product, and which Pods have them.

Each node has a row for each product of each driver. Devices that nodes share, such as
those of a network, are in rows of their own. IN USE are devices that claims have,
BLOCKED those that no claim can get, UNHEALTHY those that are tainted, failing or gone:
kubectl dra devices --help says what the states are.`,
		Example: `  # Where are free devices?
  kubectl dra nodes --state free

  # The nodes of a node pool
  kubectl dra nodes -l cloud.google.com/gke-nodepool=a3 -L topology.kubernetes.io/zone

  # Two nodes, with their drivers, as they change
  kubectl dra nodes gpu-node-1 node/gpu-node-2 -o wide --watch`,
		ValidArgsFunction: reach.CompleteNames("nodes"),
	}
	q := selecting.NewQuestion(command, reach, streams)
	q.AddDeviceFlagsTo(command)
	var columns []string
	command.Flags().StringSliceVarP(&columns, "label-columns", "L", nil, "Labels of nodes to show as columns.")
	q.Ask(command, func(c *selecting.Cluster, names []string) *selecting.Answer {
		for i := range names {
			names[i] = names[i][strings.IndexByte(names[i], '/')+1:]
		}
		return chooseNodes(c, &q.Flags, names, columns)
	})
	return command
}

// Node is a node with its devices of one product, or devices that nodes share.
type Node struct {
	// Name is left out for devices that nodes share.
	Name string `json:"node,omitempty"`
	// NotReady says that the node is not Ready.
	NotReady bool   `json:"notReady,omitempty"`
	Driver   string `json:"driver"`
	Product  string `json:"product,omitempty"`
	// Parts says that the devices are parts of others.
	Parts   bool             `json:"parts,omitempty"`
	Devices inventory.Counts `json:"devices"`
	Gone    int              `json:"gone,omitempty"`
	// Pods have devices, by namespace and name.
	Pods   []string          `json:"pods,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
}

// ResourceName is kubectl's name of the node.
func (n Node) ResourceName() string { return "node/" + cmp.Or(n.Name, "<shared>") }

func chooseNodes(c *selecting.Cluster, chosen *selecting.Flags, names, columns []string) *selecting.Answer {
	found := sumUpNodes(c, chosen, names)
	if len(found) == 0 {
		headline := chosen.DescribeNothing(c)
		if len(names) > 0 {
			headline = fmt.Sprintf("No device is on node %s", strings.Join(names, " or "))
		}
		return &selecting.Answer{Headline: headline}
	}
	var counts inventory.Counts
	gone, nodes := 0, map[string]bool{}
	a := &selecting.Answer{Tables: output.Tables{newTable(found, columns)}}
	for i := range found {
		if found[i].Name != "" {
			nodes[found[i].Name] = true
		}
		gone += found[i].Gone
		for state, count := range found[i].Devices {
			counts[state] += count
		}
		a.Objects = append(a.Objects, found[i])
	}
	a.Headline = cli.CountWith(len(nodes), "node has ", "nodes have ") + selecting.DescribeCounts(&counts, gone)
	return a
}

// sumUpNodes returns the nodes that have devices, by name, driver and product.
func sumUpNodes(c *selecting.Cluster, chosen *selecting.Flags, names []string) []Node {
	type key struct {
		node, driver, product string
		isPart                bool
	}
	sums := map[key]*Node{}
	products := map[[4]string]string{}
	devices := c.ListDevices()
	for i := range devices {
		products[[4]string{devices[i].Node, devices[i].Driver, devices[i].Pool, devices[i].Name}] = devices[i].Product
	}
	devices = slices.DeleteFunc(devices, func(d clusterdevices.Device) bool {
		return !chosen.ChoosesDevice(c, &d) || len(names) > 0 && !slices.Contains(names, d.Node)
	})
	var all []*Node
	for i := range devices {
		d := &devices[i]
		product := d.Product
		if d.Whole != "" {
			product = products[[4]string{d.Node, d.Driver, d.Pool, d.Whole}]
		}
		of := key{d.Node, d.Driver, product, d.Whole != ""}
		sum := sums[of]
		if sum == nil {
			sum = &Node{Name: d.Node, NotReady: c.NotReady[d.Node], Driver: d.Driver, Product: product, Parts: of.isPart, Labels: c.Labels[d.Node]}
			sums[of] = sum
			all = append(all, sum)
		}
		if d.State == inventory.Gone {
			sum.Gone++
		} else {
			sum.Devices[d.State]++
		}
		_, pods := clusterdevices.ClaimsAndPods(d.Claims)
		sum.Pods = append(sum.Pods, pods...)
	}
	found := make([]Node, len(all))
	for i, sum := range all {
		slices.Sort(sum.Pods)
		sum.Pods = slices.Compact(sum.Pods)
		found[i] = *sum
	}
	return found
}

func newTable(found []Node, columns []string) *output.Rows {
	has := func(is func(*Node) bool) bool {
		return slices.ContainsFunc(found, func(n Node) bool { return is(&n) })
	}
	rows := &output.Rows{Columns: []output.Column{
		{Name: "node"},
		{Name: "ready", Wide: !has(func(n *Node) bool { return n.NotReady })},
		{Name: "driver", Wide: !has(func(n *Node) bool { return n.Driver != found[0].Driver }), Spare: 4},
		{Name: "product", Spare: 1},
		{Name: "devices"},
		{Name: "free"},
		{Name: "blocked", Wide: !has(func(n *Node) bool { return n.Devices[inventory.Blocked] > 0 })},
		{Name: "in use"},
		{Name: "unhealthy", Wide: !has(func(n *Node) bool { return n.countUnhealthy() > 0 })},
		{Name: "pods", Spare: 2},
	}}
	for _, name := range columns {
		rows.Columns = append(rows.Columns, output.Column{Name: name[strings.LastIndexByte(name, '/')+1:]})
	}
	const mostPods = 3
	for i := range found {
		n := &found[i]
		ready, product := "True", output.OrNone(n.Product)
		if n.NotReady {
			ready = "False"
		}
		if n.Parts {
			product += " (parts)"
		}
		cells := []string{
			cmp.Or(n.Name, "<shared>"), ready, n.Driver, product, strconv.Itoa(selecting.Sum(&n.Devices) + n.Gone), strconv.Itoa(n.Devices[inventory.Free]), strconv.Itoa(n.Devices[inventory.Blocked]),
			strconv.Itoa(selecting.InUse(&n.Devices)), strconv.Itoa(n.countUnhealthy()), output.OrNone(cli.FirstFew(n.Pods, mostPods)),
		}
		for _, name := range columns {
			cells = append(cells, output.OrNone(n.Labels[name]))
		}
		rows.Add(cells...)
		if n.NotReady || n.countUnhealthy() > 0 {
			rows.Mark()
		}
	}
	return rows
}

func (n *Node) countUnhealthy() int { return selecting.Unhealthy(&n.Devices) + n.Gone }

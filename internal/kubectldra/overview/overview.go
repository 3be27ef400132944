package overview

import (
	"cmp"
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
		Use:   "overview",
		Short: "Show how many devices of each product are free, in use or unhealthy, and what is wrong.",
		Long: `Show how many devices of each driver, node pool and product are free, blocked, in use or
unhealthy, and then what is wrong, the most important first.

NODE POOL is the value of the first of these labels that any node has, or of those that
--label-columns names: ` + strings.Join(nodePoolLabels, ",\n") + `.
A row with (parts) counts parts of devices, such as partitions of GPUs, of which the row
above counts the whole ones. BLOCKED devices are those that no claim can get, since others
have their counters, or their node is not Ready. UNHEALTHY are those that are
tainted or failing, or that a kubelet reports as unhealthy.`,
		Example: `  # What is there, what is free, and what is wrong?
  kubectl dra overview

  # By zone, of one driver
  kubectl dra overview -L topology.kubernetes.io/zone --driver gpu.nvidia.com

  # For programs
  kubectl dra overview -o json`,
		Args: cobra.NoArgs,
	}
	q := selecting.NewQuestion(command, reach, streams)
	q.IsInventory = true
	var labels []string
	command.Flags().StringSliceVarP(&labels, "label-columns", "L", nil, "Labels of nodes by which devices are counted, instead of the label of the node pool.")
	q.Ask(command, func(c *selecting.Cluster, _ []string) *selecting.Answer { return summarizeDevices(c, &q.Flags, labels) })
	return command
}

// nodePoolLabels are those by which providers and autoscalers name node pools.
var nodePoolLabels = []string{
	"karpenter.sh/nodepool", "cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup", "kubernetes.azure.com/agentpool",
	"node.kubernetes.io/instance-type",
}

// Total sums up devices of a driver, node pool and product.
type Total struct {
	Type string `json:"type"`
	// NodePool are the values of the labels by which devices are counted.
	NodePool []string `json:"nodePool,omitempty"`
	clusterdevices.ProductTotal
}

// separator is between the values of labels in the name of a group.
const separator = "\x00"

func summarizeDevices(c *selecting.Cluster, chosen *selecting.Flags, labels []string) *selecting.Answer {
	isGivenLabels := len(labels) > 0
	if !isGivenLabels {
		labels = findNodePoolLabel(c)
	}
	taken := c.TakeInventory()
	products := clusterdevices.NewProductTotals(taken)
	var counts inventory.Counts
	found := &problems{cluster: c}
	for _, item := range taken.Items {
		var values []string
		for _, label := range labels {
			values = append(values, c.Labels[item.Node][label])
		}
		for i := range item.Pools {
			pool := &item.Pools[i]
			if chosen.ChoosesPool(c, item.Node, pool.Driver) {
				products.AddPool(strings.Join(values, separator), item.Node, pool)
				for j := range pool.Devices {
					counts[pool.Devices[j].State]++
				}
				found.addPool(item, pool)
			}
		}
	}
	gone := slices.DeleteFunc(slices.Clone(taken.Gone), func(d inventory.GoneDevice) bool { return !chosen.ChoosesPool(c, d.Node, d.Driver) })
	for i := range gone {
		d := &gone[i]
		_, pods := clusterdevices.ClaimsAndPods(d.Claims)
		found.note(goneDevices, "claims have devices that "+d.Driver+" publishes no more", cmp.Or(d.Node, "pool "+d.Pool), "kubectl dra devices --state gone", 1, pods...)
	}
	found.addWaitingPods()
	sorted, totals := found.sorted(), products.Sorted()
	if len(totals)+len(sorted) == 0 {
		return &selecting.Answer{Headline: chosen.DescribeNothing(c)}
	}
	number := "No problems"
	if len(sorted) > 0 {
		number = cli.CountWith(len(sorted), "problem", "problems")
	}
	a := &selecting.Answer{Headline: selecting.DescribeCounts(&counts, len(gone)) + ". " + number, Objects: objectsOf(totals, sorted)}
	if len(totals) > 0 {
		a.Tables = append(a.Tables, productTable(totals, labels, isGivenLabels))
	}
	if len(sorted) > 0 {
		a.Tables = append(a.Tables, problemTable(sorted))
	}
	return a
}

// objectsOf are the answer for programs.
func objectsOf(totals []clusterdevices.ProductTotal, sorted []Problem) []any {
	var objects []any
	for _, total := range totals {
		var values []string
		if total.Group != "" {
			values = strings.Split(total.Group, separator)
		}
		total.Group = ""
		objects = append(objects, Total{"total", values, total})
	}
	for i := range sorted {
		objects = append(objects, sorted[i])
	}
	return objects
}

// findNodePoolLabel returns the first label of node pools that any node has, or none.
func findNodePoolLabel(c *selecting.Cluster) []string {
	for _, label := range nodePoolLabels {
		for _, labels := range c.Labels {
			if labels[label] != "" {
				return []string{label}
			}
		}
	}
	return nil
}

func productTable(totals []clusterdevices.ProductTotal, labels []string, isGivenLabels bool) *output.Rows {
	has := func(is func(*clusterdevices.ProductTotal) bool) bool {
		return slices.ContainsFunc(totals, func(t clusterdevices.ProductTotal) bool { return is(&t) })
	}
	rows := &output.Rows{Title: "Devices:", Columns: []output.Column{{Name: "driver", Spare: 2}}}
	for _, label := range labels {
		name := "node pool"
		if isGivenLabels {
			name = label[strings.LastIndexByte(label, '/')+1:]
		}
		rows.Columns = append(rows.Columns, output.Column{Name: name, Spare: 1})
	}
	rows.Columns = append(rows.Columns,
		output.Column{Name: "product"},
		output.Column{Name: "nodes", Spare: 4},
		output.Column{Name: "devices"},
		output.Column{Name: "used", Spare: 3},
		output.Column{Name: "free"},
		output.Column{Name: "blocked", Wide: !has(func(t *clusterdevices.ProductTotal) bool { return t.States[inventory.Blocked] > 0 })},
		output.Column{Name: "in use"},
		output.Column{Name: "unhealthy"},
	)
	for i := range totals {
		t := &totals[i]
		product, used, nodes := output.OrNone(t.Product), output.None, strconv.Itoa(t.Nodes)
		if t.Parts {
			product += " (parts)"
		}
		if t.Usage != nil {
			used = output.Percent(t.Usage.Ratio())
		}
		if t.Nodes == 0 {
			nodes = "<shared>"
		}
		cells := []string{t.Driver}
		if len(labels) > 0 {
			for value := range strings.SplitSeq(t.Group, separator) {
				cells = append(cells, cmp.Or(value, output.None))
			}
		}
		cells = append(cells, product, nodes, strconv.Itoa(selecting.Sum(&t.States)), used, strconv.Itoa(t.States[inventory.Free]), strconv.Itoa(t.States[inventory.Blocked]),
			strconv.Itoa(selecting.InUse(&t.States)), strconv.Itoa(selecting.Unhealthy(&t.States)))
		rows.Add(cells...)
	}
	return rows
}

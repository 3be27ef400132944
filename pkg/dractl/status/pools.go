package status

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/kwok-dra/kwok-dra/pkg/dractl/output"
	"github.com/kwok-dra/kwok-dra/pkg/inventory"
)

// Overview is what the command shows of a cluster.
type Overview struct {
	Pools   []Pool    `json:"pools"`
	Waiting []Waiting `json:"waiting"`
}

// Pool sums up a pool.
type Pool struct {
	// Node is left out for a pool that nodes share.
	Node       string           `json:"node,omitempty"`
	Driver     string           `json:"driver"`
	Name       string           `json:"pool"`
	Generation int64            `json:"generation"`
	Slices     int64            `json:"slices"`
	SliceCount int64            `json:"resourceSliceCount"`
	States     inventory.Counts `json:"devices"`
}

// complete tells whether all slices are there.
func (p *Pool) complete() bool { return p.Slices == p.SliceCount }

func (w *world) overview() *Overview {
	o := &Overview{Pools: []Pool{}, Waiting: w.waiting()}
	for _, item := range w.inventory().Items {
		for i := range item.Pools {
			pool := &item.Pools[i]
			sum := Pool{
				Node: item.Node, Driver: pool.Driver, Name: pool.Name,
				Generation: pool.Generation, Slices: pool.Slices, SliceCount: pool.SliceCount,
			}
			for j := range pool.Devices {
				sum.States[pool.Devices[j].State]++
			}
			o.Pools = append(o.Pools, sum)
		}
	}
	return o
}

// The colours of terminals.
const (
	red   = "\x1b[31m"
	reset = "\x1b[0m"
)

// print prints the overview as tables, and incomplete pools in red where colours
// can be seen.
func (o *Overview) print(out io.Writer, format output.Format, colours bool) error {
	table := output.Rows{Columns: []output.Column{
		{Name: "node"}, {Name: "driver"}, {Name: "pool"}, {Name: "generation"}, {Name: "free"}, {Name: "allocated"}, {Name: "prepared"}, {Name: "tainted"}, {Name: "slices"},
	}}
	for i := range o.Pools {
		table.Add(o.Pools[i].cells()...)
	}
	var text strings.Builder
	if err := table.Print(&text, format); err != nil {
		return err
	}
	number := -1 // of the pool; the header is before the first
	for line := range strings.Lines(text.String()) {
		if colours && number >= 0 && !o.Pools[number].complete() {
			line = red + strings.TrimSuffix(line, "\n") + reset + "\n"
		}
		if _, err := io.WriteString(out, line); err != nil {
			return err
		}
		number++
	}
	return o.printWaiting(out, format)
}

func (p *Pool) cells() []string {
	node := p.Node
	if node == "" {
		node = "<shared>"
	}
	slices := fmt.Sprintf("%d/%d", p.Slices, p.SliceCount)
	if !p.complete() {
		slices += " incomplete"
	}
	cells := []string{node, p.Driver, p.Name, strconv.FormatInt(p.Generation, 10)}
	for _, count := range p.States {
		cells = append(cells, strconv.Itoa(count))
	}
	return append(cells, slices)
}

func (o *Overview) printWaiting(out io.Writer, format output.Format) error {
	if len(o.Waiting) == 0 {
		return nil
	}
	if _, err := fmt.Fprint(out, "\nPods that wait for their claims to be prepared:\n"); err != nil {
		return err
	}
	table := output.Rows{Columns: []output.Column{{Name: "namespace"}, {Name: "pod"}, {Name: "node"}, {Name: "reason"}}}
	for _, w := range o.Waiting {
		table.Add(w.Namespace, w.Pod, w.Node, w.Reason)
	}
	return table.Print(out, format)
}

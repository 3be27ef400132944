package status

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kwok-dra/kwok-dra/pkg/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/pkg/suggest"
)

// filter chooses what an overview has.
type filter struct {
	// drivers and nodes are all if none is given.
	drivers, nodes []string
	// problems leaves out pools that are as they should be.
	problems bool
}

func (f *filter) addTo(command *cobra.Command, reach *cluster.Flags) {
	flags := command.Flags()
	flags.StringSliceVar(&f.drivers, "driver", nil, "show the pools of these drivers only")
	flags.StringSliceVar(&f.nodes, "node", nil, "show the pools of these nodes only")
	flags.BoolVar(&f.problems, "problems", false, "show only pools that are incomplete or have tainted or failing devices, and Pods that wait")
	// It fails only for a flag that does not exist.
	_ = command.RegisterFlagCompletionFunc("node", reach.CompleteNodes)
}

// chooses reports whether the filter chooses the pools of a driver on a node. The
// node is empty for pools that nodes share.
func (f *filter) chooses(node, driver string) bool {
	return f.choosesNode(node) && (len(f.drivers) == 0 || slices.Contains(f.drivers, driver))
}

// unmatched names what chooses nothing, with what may be meant.
func (f *filter) unmatched(w *world) string {
	var drivers []string
	for _, slice := range w.slices {
		drivers = append(drivers, slice.Spec.Driver)
	}
	for _, driver := range f.drivers {
		if nearest := suggest.Nearest(driver, drivers); nearest != "" && nearest != driver {
			return fmt.Sprintf("--driver %s: did you mean %s?", driver, nearest)
		}
	}
	return "--driver and --node"
}

func (f *filter) choosesNode(node string) bool {
	return len(f.nodes) == 0 || slices.Contains(f.nodes, node)
}

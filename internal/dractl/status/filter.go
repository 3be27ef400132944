package status

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/util/suggest"
)

// filter chooses what an overview has.
type filter struct {
	// drivers and nodes are all if none is given.
	drivers, nodes []string
	// selector is of the labels of nodes, and selected are those that have them, or nil.
	selector string
	selected map[string]bool
	// namespace is that of the Pods, or empty for all.
	namespace string
	all       bool
	// problems leaves out pools that are as they should be.
	problems bool
	states   stateFlag
}

func (f *filter) addFilterFlags(command *cobra.Command, reach *cluster.Flags) {
	flags := command.Flags()
	flags.StringSliceVar(&f.drivers, "driver", nil, "show the pools of these drivers only")
	flags.StringSliceVar(&f.nodes, "node", nil, "show the pools of these nodes only")
	flags.StringVarP(&f.selector, "selector", "l", "", "show the pools of nodes with these labels only")
	flags.BoolVarP(&f.all, "all-namespaces", "A", false, "show the Pods that wait in all namespaces, which is the default without -n")
	flags.BoolVar(&f.problems, "problems", false, "show only pools that are incomplete or have tainted or failing devices, and Pods that wait")
	// It fails only for a flag that does not exist.
	_ = command.RegisterFlagCompletionFunc("node", reach.CompleteNodes)
}

// choosesPools reports whether the filter chooses the pools of a driver on a node. The
// node is empty for pools that nodes share.
func (f *filter) choosesPools(node, driver string) bool {
	return f.choosesNode(node) && (len(f.drivers) == 0 || slices.Contains(f.drivers, driver))
}

// describeUnmatched names the flag that chooses nothing, and what the user may have meant.
func (f *filter) describeUnmatched(w *world) string {
	var drivers []string
	for _, slice := range w.Slices {
		drivers = append(drivers, slice.Spec.Driver)
	}
	for _, driver := range f.drivers {
		if nearest := suggest.Nearest(driver, drivers); nearest != "" && nearest != driver {
			return fmt.Sprintf("--driver %s: did you mean %s?", driver, nearest)
		}
	}
	if f.selector != "" && len(w.selected) == 0 {
		return fmt.Sprintf("-l %s: no node has these labels: see kubectl get nodes --show-labels", f.selector)
	}
	return "--driver, --node and -l"
}

func (f *filter) choosesNode(node string) bool {
	return (len(f.nodes) == 0 || slices.Contains(f.nodes, node)) && (f.selected == nil || f.selected[node])
}

// stateFlag is the flag --state.
type stateFlag []inventory.State

// stateNames are the states that the flag knows.
func stateNames() []string {
	var names []string
	for state := range inventory.Gone + 1 {
		names = append(names, state.String())
	}
	return names
}

// String implements pflag.Value.
func (f *stateFlag) String() string {
	names := make([]string, len(*f))
	for i, state := range *f {
		names[i] = state.String()
	}
	return strings.Join(names, ",")
}

// Set implements pflag.Value.
func (f *stateFlag) Set(text string) error {
	for name := range strings.SplitSeq(text, ",") {
		state := slices.Index(stateNames(), strings.ToLower(strings.TrimSpace(name)))
		if state < 0 {
			return fmt.Errorf("must be of %s", strings.Join(stateNames(), ", "))
		}
		*f = append(*f, inventory.State(state))
	}
	return nil
}

// Type implements pflag.Value.
func (f *stateFlag) Type() string { return "states" }

// hasState reports whether a state is among them. Without the flag all are.
func (f stateFlag) hasState(state inventory.State) bool {
	return len(f) == 0 || slices.Contains(f, state)
}

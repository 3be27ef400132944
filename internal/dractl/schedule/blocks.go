package schedule

import (
	"fmt"
	"io"
	"strings"

	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/simulator"
)

// block describes Pods of a namespace that have the same reasons, apart from the names of their own claims.
type block struct {
	// pod is the first of them.
	pod     string
	pods    int
	reasons []string
}

// groupBlocks groups the Pods for which there are reasons, in the order of the first
// of each group.
func groupBlocks(placements []*simulator.Placement, reasons map[*simulator.Placement][]string) []*block {
	var all []*block
	known := map[string]*block{}
	for _, p := range placements {
		if reasons[p] == nil {
			continue
		}
		alike := p.Pod.Namespace + "\n" + p.WithoutNames(strings.Join(reasons[p], "\n"))
		if known[alike] == nil {
			known[alike] = &block{pod: namespacedName(p.Pod.Namespace, p.Pod.Name), reasons: reasons[p]}
			all = append(all, known[alike])
		}
		known[alike].pods++
	}
	return all
}

// printBlocks prints each block by a format that has the Pod, how many there are,
// and the reasons.
func printBlocks(out io.Writer, format string, all []*block) error {
	var text strings.Builder
	for _, b := range all {
		many := ""
		if b.pods > 1 {
			many = fmt.Sprintf(" (%d Pods like this)", b.pods)
		}
		fmt.Fprintf(&text, format, b.pod, many, strings.Join(b.reasons, "\n  "))
	}
	return output.Text(out, text.String())
}

package schedule

import (
	"fmt"
	"io"
	"strings"
)

// block is what there is to say of Pods that are alike: Pods of a namespace for
// which the reasons are the same, but for the names of their own claims.
type block struct {
	// pod is the first of them.
	pod     string
	pods    int
	reasons []string
}

// blocks groups the Pods for which there are reasons, in the order of the first
// of each group.
func blocks(placements []*Placement, reasons map[*Placement][]string) []*block {
	var all []*block
	known := map[string]*block{}
	for _, p := range placements {
		if reasons[p] == nil {
			continue
		}
		alike := p.Pod.Namespace + "\n" + p.withoutNames(strings.Join(reasons[p], "\n"))
		if known[alike] == nil {
			known[alike] = &block{pod: nameOf(p.Pod), reasons: reasons[p]}
			all = append(all, known[alike])
		}
		known[alike].pods++
	}
	return all
}

// withoutNames puts the names that the Pod has for the claims that are made for
// it in place of the names of these claims.
func (p *Placement) withoutNames(text string) string {
	var names []string
	for _, claim := range p.Claims {
		if name, made := claim.Annotations[podClaimAnnotation]; made {
			names = append(names, claim.Name, name)
		}
	}
	names = append(names, p.Pod.Name+extendedSuffix, extendedSuffix)
	return strings.NewReplacer(names...).Replace(text)
}

// printBlocks prints each block by a format that has the Pod, how many there are,
// and the reasons.
func printBlocks(out io.Writer, format string, all []*block) error {
	for _, b := range all {
		many := ""
		if b.pods > 1 {
			many = fmt.Sprintf(" (%d Pods like this)", b.pods)
		}
		if _, err := fmt.Fprintf(out, format, b.pod, many, strings.Join(b.reasons, "\n  ")); err != nil {
			return err
		}
	}
	return nil
}

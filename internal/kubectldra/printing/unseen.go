package printing

import (
	"fmt"
	"io"
	"slices"

	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
)

// Unseen prints a line for each resource that the answer lacks, and one line if the API server serves none.
func Unseen(errOut io.Writer, unseen []reading.Unseen) {
	var lines []string
	for _, lacked := range unseen {
		if line := lacked.Describe(); !slices.Contains(lines, line) {
			lines = append(lines, line)
			_, _ = fmt.Fprintln(errOut, line)
		}
	}
}

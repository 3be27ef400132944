package printing

import (
	"fmt"
	"io"
	"slices"

	"github.com/kwok-dra/kwok-dra/internal/extensions/util/groupclient"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
)

// Unseen prints a line for each resource that the answer lacks, and one line if the API server serves none.
func Unseen(errOut io.Writer, unseen []reading.Unseen) {
	var lines []string
	for _, lacked := range unseen {
		if line := DescribeUnseen(lacked); !slices.Contains(lines, line) {
			lines = append(lines, line)
			_, _ = fmt.Fprintln(errOut, line)
		}
	}
}

// DescribeUnseen says what could not be read, why, and what to do.
func DescribeUnseen(lacked reading.Unseen) string {
	if !lacked.IsForbidden {
		return groupclient.ErrUnserved.Error()
	}
	where := ""
	switch {
	case lacked.Namespace != "":
		where = " in namespace " + lacked.Namespace
	case slices.Contains([]string{"events", "pods", "resourceclaims", "resourceclaimtemplates"}, lacked.Resource):
		where = " in all namespaces"
	}
	return fmt.Sprintf("cannot %s %s%s: ask for the ClusterRole dra-viewer, or for the right to %s them", lacked.Verb, lacked.Resource, where, lacked.Verb)
}

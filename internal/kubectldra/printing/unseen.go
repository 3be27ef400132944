package printing

import (
	"fmt"
	"io"

	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
)

// Unseen prints a line for each resource that the answer lacks.
func Unseen(errOut io.Writer, unseen []reading.Unseen) {
	for _, lacked := range unseen {
		_, _ = fmt.Fprintln(errOut, DescribeUnseen(lacked))
	}
}

// DescribeUnseen says what could not be read, why, and what to do.
func DescribeUnseen(lacked reading.Unseen) string {
	where := ""
	if lacked.Namespace != "" {
		where = " in namespace " + lacked.Namespace
	}
	if !lacked.IsForbidden {
		return fmt.Sprintf("the API server does not serve %s%s", lacked.Resource, where)
	}
	return fmt.Sprintf("cannot %s %s%s: ask for the ClusterRole dra-viewer, or for the right to %s them", lacked.Verb, lacked.Resource, where, lacked.Verb)
}

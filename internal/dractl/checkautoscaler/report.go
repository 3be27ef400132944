package checkautoscaler

import (
	"fmt"
	"io"
	"strings"

	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/dractl/trial"
	"github.com/kwok-dra/kwok-dra/pkg/drajudge"
)

// Report is the outcome of all stories.
type Report struct {
	Groups []string `json:"groups"`
	// NodesMade is how many nodes the autoscaler made, and NodesEnough is how many would have been enough.
	NodesMade   int `json:"nodesMade"`
	NodesEnough int `json:"nodesEnough"`

	trial.Report
}

func newReport(groups []*group, kubernetes string, first int64, chosen []drajudge.Statement) *Report {
	r := &Report{}
	for _, g := range groups {
		r.Groups = append(r.Groups, g.Node.Name)
	}
	r.Report = trial.Report{Command: "check-autoscaler", Subject: strings.Join(r.Groups, ", "), Kubernetes: kubernetes, FirstSeed: first}
	r.AddStatements(chosen)
	return r
}

func (r *Report) printReport(out io.Writer, format output.Format) error {
	if format == output.JSON {
		return output.Value(out, format, r)
	}
	if err := r.Print(out, format); err != nil || format != output.Table {
		return err
	}
	_, err := fmt.Fprintf(out, "\nThe autoscaler made %d nodes; %d would have been enough.\n", r.NodesMade, r.NodesEnough)
	return err
}

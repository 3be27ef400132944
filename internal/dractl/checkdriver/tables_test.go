package checkdriver

import (
	"io"
	"testing"

	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/testing/tabletest"
)

// TestTables renders each table of the package.
func TestTables(t *testing.T) {
	r := &Report{Driver: tabletest.Driver, Results: []Result{
		{Outcome: output.OutcomeOK, ID: "registers", Statement: "the driver registers within 30 seconds of its start", Source: "KEP-4381"},
		{
			Outcome: output.OutcomeFailed, ID: "unprepares-twice", Statement: "to unprepare a claim that is not prepared succeeds", Source: "kubeletplugin.DRAPlugin",
			Seen: "unprepare claim default/train: " + tabletest.Driver + " answers: no such claim",
		},
	}}
	tabletest.Golden(t, map[string]func(out io.Writer) error{
		"printReport": func(out io.Writer) error { return r.printReport(out, output.Table) },
	}, tabletest.Driver)
}

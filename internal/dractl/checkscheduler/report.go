package checkscheduler

import (
	"io"

	"github.com/kwok-dra/kwok-dra/internal/dractl/checkscheduler/story"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/dractl/trial"
	"github.com/kwok-dra/kwok-dra/pkg/drajudge"
)

// Report is the outcome of all stories.
type Report struct {
	Scheduler string `json:"scheduler"`

	trial.Report
}

// newReport makes the report of no story. A statement about what the API server does not have is skipped.
func newReport(scheduler, kubernetes string, first int64, features story.Features, statements []drajudge.Statement) *Report {
	missing := map[string]bool{
		"admin-namespace": !features.AdminAccess, "admin-requested": !features.AdminAccess,
		"first-available-one": !features.PrioritizedList,
		"extended-resources":  !features.ExtendedResources,
		"counters-total":      !features.PartitionableDevices,
		"share-ids":           !features.ConsumableCapacity, "capacity-offered": !features.ConsumableCapacity,
		"capacity-consumed": !features.ConsumableCapacity, "capacity-total": !features.ConsumableCapacity, "distinct-attribute": !features.ConsumableCapacity,
		"taints-tolerated": !features.DeviceTaints, "tolerations-copied": !features.DeviceTaints,
		"binding-conditions-copied": !features.BindingConditions, "bound-after-conditions": !features.BindingConditions,
	}
	r := &Report{Scheduler: scheduler, Report: trial.Report{Command: "check-scheduler", Subject: scheduler, Kubernetes: kubernetes, FirstSeed: first}}
	r.AddStatements(statements)
	r.Skip(func(id string) bool { return missing[id] }, "the API server does not have the feature")
	return r
}

func (r *Report) printReport(out io.Writer, format output.Format) error {
	if format == output.JSON {
		return output.Value(out, format, r)
	}
	return r.Print(out, format)
}

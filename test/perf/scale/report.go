package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// report is what a run has measured.
type report struct {
	Machine string    `json:"machine"`
	Sizes   []figures `json:"sizes"`
	// Bars are judged where all sizes were reached.
	Bars []bar `json:"bars"`
}

func (r *report) countMissed() int {
	missed := 0
	for _, b := range r.Bars {
		if !b.Met {
			missed++
		}
	}
	return missed
}

// row is a line of the table.
type row struct {
	what string
	of   func(f *figures) string
}

func decimalsOf(count int, of func(f *figures) float64) func(f *figures) string {
	return func(f *figures) string { return fmt.Sprintf("%.*f", count, of(f)) }
}

var rows = []row{
	{"nodes", func(f *figures) string { return fmt.Sprint(f.Nodes) }},
	{"devices", func(f *figures) string { return fmt.Sprint(f.Devices) }},
	{"claims, each of a Pod", func(f *figures) string { return fmt.Sprint(f.Claims) }},
	{"resident memory when all is prepared, MiB", func(f *figures) string { return formatMebibytes(f.Memory.Prepared) }},
	{"resident memory after a restart, MiB", func(f *figures) string { return formatMebibytes(f.Memory.Restarted) }},
	{"resident memory, at most at any time, MiB", func(f *figures) string { return formatMebibytes(f.Memory.Peak) }},
	{"restart to ready, s", decimalsOf(2, func(f *figures) float64 { return f.Restart.medianReady() })},
	{"plain informers to list the same, s", decimalsOf(2, func(f *figures) float64 { return f.Restart.medianPlain() })},
	{"restart to ready, of what plain informers take", func(f *figures) string { return f.Restart.readyToPlain().String() }},
	{"writes on restart", func(f *figures) string { return fmt.Sprint(f.Restart.Writes) }},
	{"CPU per 1,000 heartbeats, s", decimalsOf(3, func(f *figures) float64 { return f.Rest.HeartbeatCPU })},
	{"heartbeats measured, per second", decimalsOf(0, func(f *figures) float64 { return f.Rest.Heartbeats })},
	{"at rest without leases: heartbeats of all nodes every 22.5 s, % of a core", decimalsOf(1, func(f *figures) float64 { return 100 * f.heartbeatCore() })},
	{"at rest with kwok's leases: heartbeats of all nodes every 10 min, % of a core", decimalsOf(1, func(f *figures) float64 { return 100 * f.leasedCore() })},
	{"resident memory with --shard-mode=lease, at most, MiB", func(f *figures) string { return formatMebibytes(f.Leases.Peak) }},
	{"lists of all leases with --shard-mode=lease, % of a core", decimalsOf(1, func(f *figures) float64 { return 100 * f.Leases.Core })},
	{"page, s", decimalsOf(2, func(f *figures) float64 { return f.Asking.Page })},
	{"page with all devices, s", decimalsOf(2, func(f *figures) float64 { return f.Asking.Devices })},
	{"resident memory with the page open, at most, MiB", func(f *figures) string { return formatMebibytes(f.Asking.Peak) }},
	{"kwok-dractl status, s", decimalsOf(2, func(f *figures) float64 { return f.Asking.Status })},
	{"writes at rest", func(f *figures) string { return fmt.Sprint(f.Rest.Writes) }},
	{"publish, nodes/s", decimalsOf(0, func(f *figures) float64 { return f.Writing.PublishRate })},
	{"CPU to start and publish, s", decimalsOf(1, func(f *figures) float64 { return f.Writing.PublishCPU })},
	{"kwok-dra meanwhile, % of a core", decimalsOf(0, func(f *figures) float64 { return 100 * f.Writing.PublishCore })},
	{"prepare, Pods/s", decimalsOf(0, func(f *figures) float64 { return f.Writing.PrepareRate })},
	{"CPU to start and prepare, s", decimalsOf(1, func(f *figures) float64 { return f.Writing.PrepareCPU })},
	{"kwok-dra meanwhile, % of a core", decimalsOf(0, func(f *figures) float64 { return 100 * f.Writing.PrepareCore })},
}

func (r *report) printTables(out io.Writer, plot string) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.TabIndent)
	fmt.Fprintln(table)
	for _, row := range rows {
		fmt.Fprint(table, row.what)
		for i := range r.Sizes {
			fmt.Fprint(table, "\t", row.of(&r.Sizes[i]))
		}
		fmt.Fprintln(table)
	}
	if len(r.Bars) > 0 {
		fmt.Fprintln(table, "\nBAR\tWANT\tHAVE\t")
	}
	for _, b := range r.Bars {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", b.What, b.Want, b.Have, map[bool]string{true: "met", false: "NOT MET"}[b.Met])
	}
	fmt.Fprintf(table, "\n%s, all of the cluster on them\n", r.Machine)
	fmt.Fprintln(table, "Pods were bound and their claims allocated by this program, in the scheduler's place; leases were those of another replica.")
	fmt.Fprintf(table, "Restarts of kwok-dra and of plain informers took turns, %d times each: the median, and of the ratios the least and the most.\n", restarts)
	fmt.Fprintf(table, "Plot: %s\n", plot)
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print report: %w", err)
	}
	return nil
}

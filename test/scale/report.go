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

func (r *report) missed() int {
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

func decimals(count int, of func(f *figures) float64) func(f *figures) string {
	return func(f *figures) string { return fmt.Sprintf("%.*f", count, of(f)) }
}

var rows = []row{
	{"nodes", func(f *figures) string { return fmt.Sprint(f.Nodes) }},
	{"devices", func(f *figures) string { return fmt.Sprint(f.Devices) }},
	{"claims, each of a Pod", func(f *figures) string { return fmt.Sprint(f.Claims) }},
	{"resident memory when all is prepared, MiB", func(f *figures) string { return mebibytes(f.Memory) }},
	{"resident memory after a restart, MiB", func(f *figures) string { return mebibytes(f.RestartMemory) }},
	{"resident memory, at most at any time, MiB", func(f *figures) string { return mebibytes(f.PeakMemory) }},
	{"restart to ready, s", decimals(2, func(f *figures) float64 { return f.Ready })},
	{"writes on restart", func(f *figures) string { return fmt.Sprint(f.RestartWrites) }},
	{"CPU per 1,000 heartbeats, s", decimals(3, func(f *figures) float64 { return f.HeartbeatCPU })},
	{"heartbeats measured, per second", decimals(0, func(f *figures) float64 { return f.Heartbeats })},
	{"heartbeats of all nodes every 22.5 s, % of a core", decimals(1, func(f *figures) float64 { return 100 * f.heartbeatCore() })},
	{"CPU per 1,000 renewals of leases, s", decimals(3, func(f *figures) float64 { return f.RenewalCPU })},
	{"resident memory with --shard-mode=lease, at most, MiB", func(f *figures) string { return mebibytes(f.SharedMemory) }},
	{"renewals of all leases every 10 s, % of a core", decimals(1, func(f *figures) float64 { return 100 * f.renewalCore() })},
	{"writes at rest", func(f *figures) string { return fmt.Sprint(f.RestWrites) }},
	{"publish, nodes/s", decimals(0, func(f *figures) float64 { return f.PublishRate })},
	{"prepare, Pods/s", decimals(0, func(f *figures) float64 { return f.PrepareRate })},
}

func (r *report) print(out io.Writer, plot string) error {
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
	fmt.Fprintln(table, "Pods were bound and their claims allocated by this program, in the scheduler's place; where leases were renewed they were another replica's.")
	fmt.Fprintf(table, "Plot: %s\n", plot)
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print report: %w", err)
	}
	return nil
}

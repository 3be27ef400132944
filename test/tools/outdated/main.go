// Command outdated says which modules, and which versions that are pinned elsewhere, are
// behind what the Go module proxy has.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"golang.org/x/mod/module"

	"github.com/kwok-dra/kwok-dra/test/cluster/progress"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

func main() {
	format := flag.String("o", "table", "what to print: table, of what is behind, or json, of everything")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *format, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "outdated:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, format string, out io.Writer) error {
	printTo, ok := map[string]func(io.Writer, []pin) error{"table": printTable, "json": printJSON}[format]
	if !ok {
		return fmt.Errorf("read -o %q: want table or json", format)
	}
	pins, err := collectPins(ctx, sidecar.Root())
	if err != nil {
		return err
	}
	step := progress.Start(os.Stderr, fmt.Sprintf("Asking the module proxy for the newest of %d versions", len(pins)))
	err = askProxy(ctx, pins)
	step.Finish(err)
	if err != nil {
		return err
	}
	return printTo(out, pins)
}

// printTable prints what is behind, and what the proxy does not know, within 80 columns.
func printTable(out io.Writer, pins []pin) error {
	var rows bytes.Buffer
	table := tabwriter.NewWriter(&rows, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MODULE\tUSED IN\tHAS\tNEWEST")
	current, unknown := 0, 0
	for _, p := range pins {
		newest := shortVersion(p.Newest)
		switch {
		case p.Error != "":
			newest = "unknown"
			unknown++
		case !p.Behind:
			current++
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", shortPath(p.Module), p.shortUsers(), shortVersion(p.Has), newest)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if current == len(pins) {
		rows.Reset()
	}
	fmt.Fprintf(&rows, "%d of %d versions are current.\n", current, len(pins))
	if unknown > 0 {
		fmt.Fprintf(&rows, "Why %d are unknown: make outdated ARGS='-o json'\n", unknown)
	}
	_, err := rows.WriteTo(out)
	return err
}

// shortPath leaves out the middle of a long path.
func shortPath(path string) string {
	const most = 36
	if len(path) <= most {
		return path
	}
	return path[:most/2] + "..." + path[len(path)-most/2+3:]
}

// shortVersion is the date of a version that was not released.
func shortVersion(version string) string {
	if !module.IsPseudoVersion(version) {
		return version
	}
	at, err := module.PseudoVersionTime(version)
	if err != nil {
		return version
	}
	return at.Format(time.DateOnly)
}

// shortUsers is the first folder below test, or of the repository, and how many more there are.
func (p pin) shortUsers() string {
	var folders []string
	for _, user := range p.UsedIn {
		if path.Ext(user) == ".go" {
			user = path.Dir(user)
		}
		if folder := strings.TrimPrefix(user, "test/"); !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	if len(folders) == 1 {
		return folders[0]
	}
	return fmt.Sprintf("%s +%d", folders[0], len(folders)-1)
}

func printJSON(out io.Writer, pins []pin) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(pins)
}

package listing

import (
	"errors"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
)

// Answer is a table, and its rows as objects for programs.
type Answer struct {
	// Title is the answer in one line.
	Title string
	// Columns are those of the table. The one named since changes with time alone.
	Columns []output.Column
	Rows    []Row
	// Nothing says why there are no rows, if there are none.
	Nothing string
	// Missing says which names do not exist, if any.
	Missing error
}

// Row is a row of an answer.
type Row struct {
	// Key tells the row from all others of the answer.
	Key    string
	Cells  []string
	Object any
	// IsProblem marks the row.
	IsProblem bool
	// Released is the row when what it shows has gone.
	Released func() Row
}

// Print prints the answer for people: its title, and some of its rows below.
func (a *Answer) Print(out io.Writer, rows []Row, layout output.Layout) error {
	table := &output.Rows{Columns: a.Columns}
	for _, row := range rows {
		table.Add(row.Cells...)
		if row.IsProblem {
			table.Mark()
		}
	}
	if a.Title != "" && !layout.NoHeaders {
		if err := output.Text(out, a.Title+"\n\n"); err != nil {
			return err
		}
		layout.Height = max(0, layout.Height-2)
	}
	return output.Tables{table}.Print(out, layout)
}

// Age is how long ago a time was, as kubectl writes it.
func (q *Question) Age(since *time.Time) string {
	if since == nil {
		return "<unknown>"
	}
	return duration.HumanDuration(q.Now.Sub(*since))
}

// Count is a number of things, with the noun in the plural where it has to be.
func Count(count int, noun string) string {
	return cli.CountWith(count, noun, noun+"s")
}

// JoinMissing makes an error of what is missing, if anything.
func JoinMissing(missing []string) error {
	if len(missing) == 0 {
		return nil
	}
	return errors.New(strings.Join(missing, "; "))
}

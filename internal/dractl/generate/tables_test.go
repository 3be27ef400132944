package generate

import (
	"io"
	"testing"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/testing/tabletest"
)

func TestTables(t *testing.T) {
	tabletest.Golden(t, map[string]func(out io.Writer) error{
		"printProfiles": func(out io.Writer) error {
			return (&command{streams: cli.Streams{Out: out}}).printProfiles(false)
		},
		"printProfiles-wide": func(out io.Writer) error {
			return (&command{streams: cli.Streams{Out: out}, output: output.Flag{Format: output.Wide}}).printProfiles(true)
		},
	}, "amd-mi300x-auto-partition", "sriovnetwork.k8snetworkplumbingwg.io")
}

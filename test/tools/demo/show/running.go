package show

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// A Running demo is one that is complete, and was left to its user.
type Running struct {
	// Cluster is the cluster.
	Cluster *cluster.Cluster `json:"-"`
	// Command is what started it.
	Command string
	// Path is a directory for $PATH.
	Path string
	// Page is the URL of kwok-dra's page.
	Page string
	// PID is the process of kwok-dra, which these arguments start again.
	PID       int
	Arguments []string
}

// NewRunning describes a demo.
func NewRunning(command string, c *cluster.Cluster, path string, kwokDRA *sidecar.Process) *Running {
	address := strings.TrimPrefix(kwokDRA.URL, "http://")
	return &Running{
		Cluster: c, Command: command, Path: path, Page: kwokDRA.URL + "/", PID: kwokDRA.PID(),
		Arguments: append(kwokDRA.Arguments(), "--server-address", address),
	}
}

func recordIn(c *cluster.Cluster) string {
	return filepath.Join(filepath.Dir(c.Kubeconfig()), "demo.json")
}

// saveState says that the demo is complete.
func (r *Running) saveState() error {
	content, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode the state of the demo: %w", err)
	}
	if err := os.WriteFile(recordIn(r.Cluster), content, 0o600); err != nil {
		return fmt.Errorf("write the state of the demo: %w", err)
	}
	return nil
}

// findRunning returns the demo of that name, or nil. It starts again what has ended
// of it, as after a reboot. A demo that was never complete is removed.
func findRunning(ctx context.Context, name string, out io.Writer) (*Running, error) {
	c, err := cluster.Find(ctx, name)
	if err != nil && !errors.Is(err, cluster.ErrNotFound) {
		return nil, err
	}
	var content []byte
	if err == nil {
		content, err = os.ReadFile(recordIn(c))
	}
	switch {
	case errors.Is(err, cluster.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		removed, err := cluster.Down(ctx, name)
		if removed && err == nil {
			fmt.Fprintln(out, "Removed a demo whose start was interrupted.")
		}
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("read the state of the demo: %w", err)
	}
	r := &Running{Cluster: c}
	if err := json.Unmarshal(content, r); err != nil {
		return nil, fmt.Errorf("decode %s: %w", recordIn(c), err)
	}
	return r, r.resumeCluster(ctx, out)
}

func (r *Running) resumeCluster(ctx context.Context, out io.Writer) error {
	if _, _, err := cluster.Up(ctx, cluster.Options{Name: r.Cluster.Name(), Output: out}); err != nil {
		return err
	}
	if r.Cluster.Runs(r.PID) { //nolint:contextcheck // it looks at processes only
		return nil
	}
	fmt.Fprintln(out, "Starting kwok-dra again ...")
	kwokDRA, err := sidecar.Start(ctx, r.Cluster, r.Arguments...)
	if err != nil {
		return err
	}
	r.PID = kwokDRA.PID()
	return r.saveState()
}

// Access is how users reach the demo. Each line that is indented by two is a command.
func (r *Running) Access() string {
	return fmt.Sprintf(`The page with all devices, live:

    %s

To use kubectl and kwok-dractl, paste this into your shell:

  export KUBECONFIG=%s
  export PATH=%s:$PATH
`, r.Page, quoteWord(r.Cluster.Kubeconfig()), quoteWord(r.Path))
}

// describeRunning tells users who start a demo where it is already.
func (r *Running) describeRunning(command string) string {
	what, afresh := "The demo runs", "make demo-new"
	if r.Command != command {
		what = "The demo of " + r.Command + " runs"
	}
	if command != Command {
		afresh = "make demo-down " + strings.TrimPrefix(command, "make ")
	}
	versions := r.Cluster.Versions()
	return fmt.Sprintf(`%s already (Kubernetes %s, kwok %s), with all that was made in it. %s
To remove it and start afresh, or only to remove it:

  %s
  make demo-down
`, what, versions.Kubernetes, versions.Kwok, r.Access(), afresh)
}

// plain is a path that shells take as it is.
var plain = regexp.MustCompile(`^[\w/.+@-]+$`)

// quoteWord makes a path one word of shell.
func quoteWord(path string) string {
	if plain.MatchString(path) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

package docs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/kwok-dra/kwok-dra/test/e2e/docs/match"
	"github.com/kwok-dra/kwok-dra/test/e2e/docs/page"
)

// pause is between two runs of a block that is run again.
const pause = 500 * time.Millisecond

// shell is that of the reader of a page: what a block changes in it, such as its
// directory or a variable, remains for the next.
type shell struct {
	// dir is for the blocks and what they print.
	dir     string
	command *exec.Cmd
	input   io.WriteCloser
	// exits are the exit codes that blocks have left, until the shell ends.
	exits <-chan string
	count int
}

// startShell starts a shell in a directory. Its own files are in another.
func startShell(workingDirectory, dir string, environment []string) (*shell, error) {
	report, reported, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start shell: %w", err)
	}
	defer func() { _ = reported.Close() }()
	command := exec.Command("sh", "-e")
	command.Dir, command.Env = workingDirectory, environment
	command.ExtraFiles = []*os.File{reported} // 3 in the shell
	// All that it starts is in its process group, and ends with it.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start shell: %w", err)
	}
	if err := command.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start shell: %w", err), report.Close())
	}
	exits := make(chan string, 1)
	go func() {
		defer close(exits)
		defer func() { _ = report.Close() }()
		for lines := bufio.NewScanner(report); lines.Scan(); {
			exits <- lines.Text()
		}
	}()
	return &shell{dir: dir, command: command, input: input, exits: exits}, nil
}

// stop ends the shell and all that it has started.
func (s *shell) stop() {
	_ = syscall.Kill(-s.command.Process.Pid, syscall.SIGKILL)
	_ = s.command.Wait()
}

// The ways to run a block, whose path and output follow. A block that is run again
// has a shell of its own, which may fail.
const (
	once       = ". %[1]s >%[2]s 2>&1 </dev/null 3>&-\necho 0 >&3\n"
	again      = "set +e\n( set -e; . %[1]s ) >%[2]s 2>&1 </dev/null 3>&-\necho $? >&3\nset -e\n"
	background = ". %[1]s >%[2]s 2>&1 </dev/null 3>&- &\necho 0 >&3\n"
)

// run runs the commands of a step, and compares what they print with what the page
// says.
func (s *shell) run(ctx context.Context, step page.Step) error {
	way, text := once, step.Text
	if step.Fails {
		text = "! {\n" + text + "}\n"
	}
	switch {
	case step.Background:
		way = background
	case step.Retry:
		way = again
	}
	for {
		printed, err := s.runOnce(ctx, way, text)
		if err == nil && step.Output != nil {
			err = match.Output(*step.Output, printed)
		}
		if err == nil || !step.Retry {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("run the block until it does what the page says: %w: %w", context.Cause(ctx), err)
		case <-time.After(pause):
		}
	}
}

// runOnce runs a block and returns what it prints.
func (s *shell) runOnce(ctx context.Context, way, commands string) (string, error) {
	s.count++
	block := filepath.Join(s.dir, fmt.Sprint("block-", s.count, ".sh"))
	output := filepath.Join(s.dir, fmt.Sprint("output-", s.count))
	// The output is there before a block in the background makes it.
	for path, content := range map[string]string{block: commands, output: ""} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return "", fmt.Errorf("write block: %w", err)
		}
	}
	_, err := fmt.Fprintf(s.input, way, quote(block), quote(output))
	if err == nil {
		err = s.wait(ctx)
	}
	printed, readErr := os.ReadFile(output)
	if err = errors.Join(err, readErr); err != nil {
		return "", fmt.Errorf("%w; it printed:\n%s", err, printed)
	}
	return string(printed), nil
}

var errFailed = errors.New("a command failed")

func (s *shell) wait(ctx context.Context) error {
	select {
	case code := <-s.exits: // "" from a shell that has ended
		if code != "0" {
			return errFailed
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func quote(path string) string {
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

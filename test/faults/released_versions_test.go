package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// version is another version of kwok-dra than the one that is tested: a commit of this
// repository. The zero value is the one that is tested.
type version struct{ name, commit string }

var (
	tested version
	// beforeRecords is the last release that records nowhere which installation has made an object.
	beforeRecords = version{"v0.2.0", "400e00999aa4870b5e0355452f0f8418429360f7"}
	// firstRecords is the oldest version that leaves alone what is recorded to another installation.
	firstRecords = version{"the first version with records", "d32e8ffaf82c54e97172a58928759742b4d1fd63"}
)

// errNoHistory is that of a checkout without the commits of other versions, such as a shallow
// clone, or a copy without git.
var errNoHistory = errors.New("the checkout has no such commit")

// binary builds the sidecar of a version. It builds each once per process.
func (v version) binary() (string, error) {
	build, _ := versions.LoadOrStore(v, sync.OnceValues(v.build))
	return build.(func() (string, error))()
}

var versions sync.Map

func (v version) build() (_ string, err error) {
	root := sidecar.Root()
	git := func(arguments ...string) *exec.Cmd {
		command := exec.Command("git", arguments...)
		command.Dir = root
		return command
	}
	if git("cat-file", "-e", v.commit+"^{commit}").Run() != nil {
		return "", errNoHistory
	}
	dir, err := os.MkdirTemp("", "kwok-dra-"+v.commit)
	if err != nil {
		return "", fmt.Errorf("make directory for %s: %w", v.name, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	source := filepath.Join(dir, "source")
	for _, command := range []*exec.Cmd{git("read-tree", v.commit), git("checkout-index", "--all", "--prefix="+source+string(filepath.Separator))} {
		command.Env = append(os.Environ(), "GIT_INDEX_FILE="+filepath.Join(dir, "index"))
		if output, err := command.CombinedOutput(); err != nil {
			return "", fmt.Errorf("check out %s: %w\n%s", v.name, err, output)
		}
	}
	path := filepath.Join(root, "bin", "kwok-dra-"+v.commit[:12])
	// With the libraries of today nothing is downloaded, and little compiled.
	return path, sidecar.Build(source, path, "-modfile="+filepath.Join(root, "go.mod"), "./cmd/kwok-dra")
}

// startVersion starts a sidecar of a version in a place, and waits until it is ready.
func (s *site) startVersion(ctx context.Context, number int, v version, arguments ...string) error {
	if v == tested {
		return s.start(ctx, number, arguments...)
	}
	binary, err := v.binary()
	if err != nil {
		return err
	}
	process, err := s.launchProgram(number, binary, arguments...)
	if err != nil {
		return err
	}
	return process.WaitReady(ctx)
}

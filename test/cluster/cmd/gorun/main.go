// Command gorun is "go run" that shows progress while it compiles: gorun
// DIRECTORY PACKAGE [ARGUMENTS] compiles a package of the module in the directory
// and becomes that program, in that directory.
package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/kwok-dra/kwok-dra/test/cluster/compile"
	"github.com/kwok-dra/kwok-dra/test/cluster/gomod"
	"github.com/kwok-dra/kwok-dra/test/cluster/progress"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: gorun DIRECTORY PACKAGE [ARGUMENTS]")
		os.Exit(2)
	}
	if err := execProgram(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, "gorun:", err)
		os.Exit(1)
	}
}

// execProgram returns only if it fails.
func execProgram(dir, pkg string, args []string) error {
	root, err := gomod.Root("github.com/kwok-dra/kwok-dra")
	if err != nil {
		return err
	}
	if err := os.Chdir(filepath.Join(root, dir)); err != nil {
		return fmt.Errorf("enter the module of %s: %w", pkg, err)
	}
	program := filepath.Join(root, "bin", strings.ReplaceAll(filepath.Join(dir, pkg), string(filepath.Separator), "-"))
	name := filepath.Join(dir, pkg)
	packages := countPackages(pkg)
	if _, err := os.Stat(program); err != nil {
		fmt.Fprintln(os.Stderr, announceBuild(name, packages, runtime.NumCPU()))
	}
	step := progress.Start(os.Stderr, "Compiling "+name)
	err = buildProgram(pkg, program, packages, step)
	step.Finish(err)
	if err != nil {
		return err
	}
	if err := syscall.Exec(program, append([]string{program}, args...), os.Environ()); err != nil {
		return fmt.Errorf("run %s: %w", program, err)
	}
	return nil
}

// countPackages returns how many packages there are to compile, for estimates: a real
// problem shows in the build.
func countPackages(pkg string) int {
	deps, _ := exec.Command("go", "list", "-deps", pkg).Output()
	return bytes.Count(deps, []byte("\n"))
}

// announceBuild says how long it takes to compile so many packages when none was
// compiled before and nothing else runs. Machines differ by a factor of two.
func announceBuild(name string, packages, cores int) string {
	const perSecond = 4 // of a core
	quick := max(1, (packages/perSecond/cores+59)/60)
	return fmt.Sprintf("Compiling the %d packages of %s. With %d cores this takes %d to %d minutes the first time, seconds later.", packages, name, cores, quick, 2*quick)
}

func buildProgram(pkg, program string, packages int, step *progress.Step) error {
	cmd := exec.Command("go", "build", "-v", "-buildvcs=false", "-o", program, pkg)
	if tail, err := compile.Run(cmd, packages, step); err != nil {
		return fmt.Errorf("compile %s: %w\n%s", pkg, err, tail)
	}
	return nil
}

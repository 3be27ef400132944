package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/kwok-dra/kwok-dra/test/cluster/build"
)

// A pin is a version of a module that something in the repository asks for.
type pin struct {
	Module string `json:"module"`
	// UsedIn are files or folders of go.mod files.
	UsedIn []string `json:"usedIn"`
	Has    string   `json:"has"`
	// Newest is of the same major version, and of the same minor version if Minor is set.
	Newest string `json:"newest,omitempty"`
	Minor  string `json:"minor,omitempty"`
	Behind bool   `json:"behind"`
	// Error is why the proxy knows no newest version.
	Error string `json:"error,omitempty"`
}

// query is how the go command is asked for the newest version.
func (p pin) query() string { return p.Module + "@" + cmp.Or(p.Minor, "latest") }

// collectPins finds all pins of a repository, in the order of their modules.
func collectPins(ctx context.Context, root string) ([]pin, error) {
	var all []pin
	add := func(found pin) {
		i := slices.IndexFunc(all, func(p pin) bool {
			return p.Module == found.Module && p.Has == found.Has && p.Minor == found.Minor
		})
		if i < 0 {
			all = append(all, found)
		} else if !slices.Contains(all[i].UsedIn, found.UsedIn[0]) {
			all[i].UsedIn = append(all[i].UsedIn, found.UsedIn[0])
		}
	}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			return skipOthers(path != root, name)
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		switch {
		case name == "go.mod":
			return readGoMod(ctx, path, filepath.Dir(relative), add)
		case name == "Makefile" || filepath.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go"):
			return readVersions(path, relative, add)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("collect versions: %w", err)
	}
	for _, pinned := range build.Pinned() {
		add(pin{Module: pinned.Path, Has: pinned.Version, Minor: minorOf(pinned.Path, pinned.Version), UsedIn: []string{"test/cluster"}})
	}
	slices.SortFunc(all, func(a, b pin) int {
		return cmp.Or(cmp.Compare(a.Module, b.Module), semver.Compare(a.Has, b.Has))
	})
	return all, nil
}

// skipOthers skips folders without sources.
func skipOthers(isBelow bool, folder string) error {
	if isBelow && (strings.HasPrefix(folder, ".") || folder == "bin" || folder == "testdata") {
		return filepath.SkipDir
	}
	return nil
}

// minorOf is the minor version of what clusters run in several of them.
func minorOf(module, version string) string {
	if module == "k8s.io/kubernetes" {
		return semver.MajorMinor(version)
	}
	return ""
}

// readGoMod adds what a go.mod requires directly, and the modules of its tools.
func readGoMod(ctx context.Context, file, folder string, add func(pin)) error {
	out, err := exec.CommandContext(ctx, "go", "mod", "edit", "-json", file).Output()
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	var parsed struct {
		Require []struct {
			Path, Version string
			Indirect      bool
		}
		Replace []struct{ Old struct{ Path string } }
		Tool    []struct{ Path string }
	}
	if err := json.Unmarshal(out, &parsed); err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	for _, required := range parsed.Require {
		isReplaced, isTool := false, false
		for _, replaced := range parsed.Replace {
			isReplaced = isReplaced || replaced.Old.Path == required.Path
		}
		for _, tool := range parsed.Tool {
			isTool = isTool || strings.HasPrefix(tool.Path+"/", required.Path+"/")
		}
		if !isReplaced && (!required.Indirect || isTool) {
			add(pin{Module: required.Path, Has: required.Version, UsedIn: []string{folder}})
		}
	}
	return nil
}

var (
	// versionInGo is a version that a program asks for, such as the suite of another project.
	versionInGo = regexp.MustCompile(`Path: "([^"]+)", Version: "(v[^"]+)"`)
	// versionInMakefile is a program that make runs.
	versionInMakefile = regexp.MustCompile(`run ([^\s@]+)/cmd/[^\s@]+@(v\S+)`)
)

// readVersions adds the versions that a file names.
func readVersions(file, relative string, add func(pin)) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for _, expression := range []*regexp.Regexp{versionInGo, versionInMakefile} {
		for _, match := range expression.FindAllSubmatch(content, -1) {
			add(pin{Module: string(match[1]), Has: string(match[2]), UsedIn: []string{filepath.ToSlash(relative)}})
		}
	}
	return nil
}

// askProxy fills in the newest versions, by one call of the go command, which asks GOPROXY.
func askProxy(ctx context.Context, pins []pin) error {
	queries := []string{"list", "-m", "-e", "-json"}
	for _, p := range pins {
		if !slices.Contains(queries, p.query()) {
			queries = append(queries, p.query())
		}
	}
	// Outside of a module, whose requirements would count.
	dir, err := os.MkdirTemp("", "outdated-")
	if err != nil {
		return fmt.Errorf("create directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	list := exec.CommandContext(ctx, "go", queries...)
	list.Dir = dir
	list.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	var problems bytes.Buffer
	list.Stderr = &problems
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("ask the module proxy: %w\n%s", err, problems.Bytes())
	}
	if err := readAnswers(out, pins); err != nil {
		return err
	}
	// A proxy may lack a module; if it has none, it could not be asked.
	if i := slices.IndexFunc(pins, func(p pin) bool { return p.Error == "" }); i < 0 && len(pins) > 0 {
		return fmt.Errorf("ask the module proxy: %s", pins[0].Error)
	}
	return nil
}

// readAnswers reads what the go command says of each query.
func readAnswers(out []byte, pins []pin) error {
	for answers := json.NewDecoder(bytes.NewReader(out)); ; {
		var answer struct {
			Path, Version, Query string
			Error                *struct{ Err string }
		}
		err := answers.Decode(&answer)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the answer of the go command: %w", err)
		}
		for i := range pins {
			p := &pins[i]
			switch {
			case p.query() != answer.Path+"@"+cmp.Or(answer.Query, answer.Version):
			case answer.Error != nil:
				p.Error = answer.Error.Err
			default:
				p.Newest = answer.Version
				p.Behind = semver.Compare(p.Has, p.Newest) < 0
			}
		}
	}
}

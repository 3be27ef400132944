package documents

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/extensions/util/untrusted"
	"github.com/kwok-dra/kwok-dra/internal/util/namedfile"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// Stdin is the path of the standard input, as with kubectl.
const Stdin = "-"

// maxFile is what a file may have. All slices of 10,000 nodes with eight devices have a tenth of it.
const maxFile = 1 << 30

// Files are the paths that a user gives with a flag.
type Files struct {
	Paths     []string
	Recursive bool
}

// AddTo adds -f and -R to a command.
func (f *Files) AddTo(command *cobra.Command, usage string) {
	command.Flags().StringArrayVarP(&f.Paths, "filename", "f", nil, usage+": a file, a directory, or - for standard input; may be given several times")
	command.Flags().BoolVarP(&f.Recursive, "recursive", "R", false, "read directories and all below them, and skip documents there that are not for Kubernetes")
	// The shell completes file names.
	_ = command.MarkFlagFilename("filename", "yaml", "yml", "json")
}

// Read reads all documents of all files, in the order of the paths and of the
// names in directories. It tells which documents it skips below a directory since
// they are not meant for Kubernetes. The error names every file that cannot be read.
func (f *Files) Read(streams cli.Streams) ([]Document, error) {
	var all []Document
	var errs []error
	var foreign []string
	for _, path := range f.Paths {
		read, err := f.readPath(streams.In, path)
		errs = append(errs, err)
		for i := range read {
			if f.Recursive && path != Stdin && read[i].File != path && !meant.Match(read[i].Data) {
				// No object of Kubernetes: such as the values or a template of a chart.
				if _, err := read[i].decodeObjects(); err != nil {
					foreign = append(foreign, read[i].File)
					continue
				}
			}
			all = append(all, read[i])
		}
	}
	if len(foreign) > 0 {
		count := len(foreign)
		streams.Tell("skipped what is not for Kubernetes: %d documents in %s\n", count, cli.FirstFew(slices.Compact(foreign), maxListed))
	}
	return all, errors.Join(errs...)
}

// maxListed is how many names a message has.
const maxListed = 3

// meant matches a document that is meant for a command, even if it is invalid YAML.
var meant = regexp.MustCompile(`(?m)\bapiVersion["']?\s*:\s*["']?[\w.-]*\b(kwok\.x-k8s\.io|karpenter\.sh|resource\.k8s\.io)/|\bkind["']?\s*:\s*["']?(` +
	v1alpha1.ResourcePoolTemplateKind + "|" + v1alpha1.KwokDRAConfigurationKind + `)\b`)

func (f *Files) readPath(in io.Reader, path string) ([]Document, error) {
	switch {
	case path == Stdin:
		data, err := io.ReadAll(in)
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		return Split("<stdin>", data), nil
	case strings.HasPrefix(path, "http://"), strings.HasPrefix(path, "https://"):
		return nil, fmt.Errorf("read %s: URLs are not supported: download the file, or pipe it: curl -fsSL %s | %s", path, path, "... -f -")
	}
	paths, err := f.listFiles(path)
	if err != nil {
		return nil, err
	}
	read := namedfile.Read
	if len(paths) != 1 || paths[0] != path { // found in a directory, where others may put anything
		read = untrusted.ReadLinked
	}
	var all []Document
	var errs []error
	for _, path := range paths {
		data, err := read(path, maxFile)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, Split(path, data)...)
	}
	return all, errors.Join(errs...)
}

var extensions = []string{".yaml", ".yml", ".json"}

// listFiles lists the files of a directory; a file is its own list.
func (f *Files) listFiles(root string) ([]string, error) {
	info, err := os.Stat(root)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{root}, nil
	}
	var paths []string
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && !f.Recursive:
			return filepath.SkipDir
		case entry.IsDir() || !slices.Contains(extensions, filepath.Ext(path)):
			return nil
		}
		paths = append(paths, path)
		return nil
	})
	if err == nil && len(paths) == 0 {
		advice := "; use -R to read the directories below it"
		if f.Recursive {
			advice = ", nor has any below it"
		}
		err = fmt.Errorf("read %s: the directory has no file named *.yaml, *.yml or *.json%s", root, advice)
	}
	return paths, err
}

package view

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/extensions/util/atomicfile"
	"github.com/kwok-dra/kwok-dra/internal/extensions/util/untrusted"
)

// Directory is shared with kwok, which has it under the same path:
//
//	bin/                      stand-ins for programs, for the PATH of kwok
//	host/                     what all fake nodes have, as the user puts it there
//	pods/UID/pod.json         which Pod that is
//	pods/UID/CONTAINER/log    what kubectl logs shows
//	pods/UID/CONTAINER/env    what env prints
//	pods/UID/CONTAINER/root/  what is mounted
type Directory string

func (d Directory) programsFolder() string { return filepath.Join(string(d), "bin") }
func (d Directory) hostFolder() string     { return filepath.Join(string(d), "host") }
func (d Directory) podsFolder() string     { return filepath.Join(string(d), "pods") }

func (d Directory) podFolder(uid types.UID) string { return filepath.Join(d.podsFolder(), string(uid)) }

func (d Directory) containerFolder(uid types.UID, name string) string {
	return filepath.Join(d.podFolder(uid), name)
}

// OpenDirectory makes the directory and writes the stand-ins for programs.
func OpenDirectory(name string) (Directory, error) {
	absolute, err := filepath.Abs(name)
	if err != nil {
		return "", fmt.Errorf("directory for the views of containers %s: %w", name, err)
	}
	if strings.ContainsAny(absolute, ":\n") {
		return "", fmt.Errorf("directory for the views of containers %q: there may be no colon and no line break in it, since it goes into a PATH: choose another one", absolute)
	}
	d := Directory(absolute)
	if err := d.checkPrograms(); err != nil {
		return "", err
	}
	for _, folder := range []string{d.programsFolder(), d.hostFolder(), d.podsFolder()} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return "", fmt.Errorf("make the directory for the views of containers: %w: choose one that kwok-dra may write to", err)
		}
	}
	for _, name := range standIns {
		if err := atomicfile.Write(filepath.Join(d.programsFolder(), name), program, 0o755); err != nil {
			return d, err
		}
	}
	return d, nil
}

//go:embed programs/program
var program []byte

// standIns are the programs that have a stand-in. It knows by its own name which one it is.
var standIns = []string{"cat", "env", "ls", nvidiaSMI, "printenv"}

// Limits of what is read in the directory, to which others may write. A program and a mark take a
// hundredth of them, and no kwok runs a million Pods.
const (
	maxProgram = 1 << 20
	maxMark    = 64 << 10
	maxPods    = 1_000_000
)

// checkPrograms refuses a directory with other programs, such as /usr.
func (d Directory) checkPrograms() error {
	for _, name := range standIns {
		file := filepath.Join(d.programsFolder(), name)
		content, err := untrusted.ReadFile(file, maxProgram)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			continue
		}
		if err != nil || !bytes.Contains(content, []byte(viewVariable)) {
			return fmt.Errorf("directory for the views of containers %s: %s is another program, and would be replaced: choose a directory of its own", d, file)
		}
	}
	return nil
}

// folder describes the folder of a Pod, in its file pod.json.
type folder struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	Size      int       `json:"size"`
}

const markFile = "pod.json"

func (f *folder) podKey() types.NamespacedName {
	return types.NamespacedName{Namespace: f.Namespace, Name: f.Name}
}

// unfinished begins the names of folders that are being written or removed.
const unfinished = ".unfinished-"

// listFolders lists the folders of Pods, and removes unfinished ones. It ignores everything else, which
// somebody else has put there.
func (d Directory) listFolders() ([]folder, error) {
	entries, err := untrusted.ReadDir(d.podsFolder(), maxPods)
	if err != nil {
		return nil, fmt.Errorf("list the views of containers: %w", err)
	}
	var all []folder
	var errs []error
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), unfinished) {
			errs = append(errs, os.RemoveAll(filepath.Join(d.podsFolder(), entry.Name())))
			continue
		}
		f := folder{}
		text, err := untrusted.ReadFile(filepath.Join(d.podsFolder(), entry.Name(), markFile), maxMark)
		if err == nil && json.Unmarshal(text, &f) == nil && string(f.UID) == entry.Name() && 0 <= f.Size && f.Size <= mostInPod {
			all = append(all, f)
		}
	}
	return all, errors.Join(errs...)
}

// writeFolder replaces the folder of a Pod: it writes all files to a temporary folder, the mark last, and
// then renames that.
func (d Directory) writeFolder(f *folder, c *content) error {
	temporary := d.podFolder(unfinished + f.UID)
	if err := os.RemoveAll(temporary); err != nil {
		return fmt.Errorf("write the view of pod %s: %w", f.podKey(), err)
	}
	mark, err := json.Marshal(f)
	if err == nil {
		err = c.writeTo(temporary)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(temporary, markFile), mark, 0o644)
	}
	if err == nil {
		err = d.removeFolder(f.UID)
	}
	if err == nil {
		err = os.Rename(temporary, d.podFolder(f.UID))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write the view of pod %s: %w", f.podKey(), err), os.RemoveAll(temporary))
	}
	return nil
}

func (c *content) writeTo(directory string) error {
	for _, name := range c.Folders {
		if err := os.MkdirAll(filepath.Join(directory, name), 0o755); err != nil {
			return err
		}
	}
	for name, text := range c.Files {
		if err := makeParent(directory, name); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(directory, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	for name, target := range c.Links {
		if err := makeParent(directory, name); err != nil {
			return err
		}
		if err := os.Symlink(target, filepath.Join(directory, name)); err != nil {
			return err
		}
	}
	return nil
}

func makeParent(directory, name string) error {
	return os.MkdirAll(filepath.Dir(filepath.Join(directory, name)), 0o755)
}

// removeFolder removes the folder of a Pod. It follows no symbolic link.
func (d Directory) removeFolder(uid types.UID) error {
	going := d.podFolder(unfinished + "gone-" + uid) // so what fails half-way is done by the next start
	err := os.RemoveAll(going)
	if err == nil {
		err = os.Rename(d.podFolder(uid), going)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = os.RemoveAll(going)
	}
	if err != nil {
		return fmt.Errorf("remove the view of a pod: %w", err)
	}
	return nil
}

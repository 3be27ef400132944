// Package root lays out the folders that stand in for the root directories of the
// kubelets of fake nodes. Below the folder of a node are plugins_registry and plugins, as
// below /var/lib/kubelet.
package root

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	validate "k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/atomicfile"
	"github.com/kwok-dra/kwok-dra/pkg/untrusted"
)

const (
	registry = "plugins_registry"
	plugins  = "plugins"
	// owner is the file that tells which node a folder is of.
	owner = "node"

	// kubeletRoot is the root directory of a kubelet. Drivers that have it built in, and see
	// the folder of their node there, name their endpoints so.
	kubeletRoot = "/var/lib/kubelet"

	// maxNodes is how many entries the directory may have, and maxOwner what the file owner may.
	maxNodes = 200_000
	maxOwner = 4 << 10

	// LongestSocket is what sun_path of unix(7) holds.
	LongestSocket = 107
	// shortName is the length of the name of a folder whose node has a longer one, as long as there are
	// such names. In a directory of up to 13 characters, such as /run/kwok-dra, the path of the folder
	// is then no longer than kubeletRoot, so that sockets have paths that fit if they fit on a kubelet.
	shortName = 2
	// namesTried is how many short names are tried of each length.
	namesTried = 10
)

// Directory has the folders of all nodes.
type Directory string

// OpenDirectory makes the directory, unless it is there.
func OpenDirectory(path string) (Directory, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("plugins directory %s: %w", path, err)
	}
	if err := checkLength(absolute); err != nil {
		return "", err
	}
	if err := os.MkdirAll(absolute, 0o755); err != nil {
		return "", fmt.Errorf("make plugins directory: %w: choose one that kwok-dra may write to", err)
	}
	// Paths are compared without symbolic links.
	resolved, err := filepath.EvalSymlinks(absolute)
	if err != nil {
		return "", fmt.Errorf("plugins directory %s: %w", path, err)
	}
	return Directory(resolved), checkLength(resolved)
}

// checkLength leaves room for the paths of sockets.
func checkLength(path string) error {
	if len(path) > v1alpha1.MaxPluginsDir {
		return fmt.Errorf("plugins directory %s: is %d characters long, and the paths of sockets below it would be too long: choose one of at most %d characters", path, len(path), v1alpha1.MaxPluginsDir)
	}
	return nil
}

// Root is the folder of one node.
type Root struct {
	Path string
	owned
}

// owned is the content of the file that tells which node a folder is of.
type owned struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
}

// folderOf is where the folder of a node is: a folder with a short name, to which the node's name is a link, or
// one with the node's name.
func (d Directory) folderOf(node string) string {
	if short, err := os.Readlink(filepath.Join(string(d), node)); err == nil && short == filepath.Base(short) && !strings.HasPrefix(short, ".") {
		return filepath.Join(string(d), short)
	}
	return filepath.Join(string(d), node)
}

// allocateFolder returns where the folder of a node is. If it is nowhere and the node's name is long, it makes a folder with
// a short name, unless it finds none that is free.
func (d Directory) allocateFolder(node string) (string, error) {
	link := filepath.Join(string(d), node)
	if path := d.folderOf(node); path != link {
		_, missing := os.Lstat(path)
		found, unread := readOwner(path)
		if isOfOther := unread == nil && found.Name != node; missing == nil && !isOfOther {
			return path, nil
		}
		if err := os.Remove(link); err != nil { // it has outlived its folder
			return "", fmt.Errorf("make the folder of node %s: %w", node, err)
		}
	}
	if _, err := os.Lstat(link); len(node) <= shortName || !errors.Is(err, fs.ErrNotExist) {
		return link, nil
	}
	for try := range 3 * namesTried {
		short := newShortName(shortName + try/namesTried)
		switch err := os.Mkdir(filepath.Join(string(d), short), 0o755); {
		case errors.Is(err, fs.ErrExist):
			continue
		case err != nil:
			return "", fmt.Errorf("make the folder of node %s: %w", node, err)
		}
		if err := os.Symlink(short, link); err != nil {
			return "", fmt.Errorf("link the folder of node %s: %w", node, errors.Join(err, os.Remove(filepath.Join(string(d), short))))
		}
		return filepath.Join(string(d), short), nil
	}
	return link, nil
}

// newShortName makes a name that no node has: those of nodes have no capital letters.
func newShortName(length int) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	name := []byte{letters[rand.IntN(len(letters))]}
	for len(name) < length {
		name = append(name, (letters + "0123456789")[rand.IntN(len(letters)+10)])
	}
	return string(name)
}

// Make makes the folder of a node, unless it is there. It belongs to the name of the node: as below a
// kubelet, what is in it outlives the Node object.
func (d Directory) Make(node string, uid types.UID) (*Root, error) {
	path, err := d.allocateFolder(node)
	if err != nil {
		return nil, err
	}
	root := &Root{Path: path, owned: owned{node, uid}}
	found, err := readOwner(root.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case found.Name != node:
		return nil, fmt.Errorf("make %s for node %s: it is of node %s: remove it", root.Path, node, found.Name)
	}
	for _, folder := range []string{root.Registry(), root.Plugins()} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, fmt.Errorf("make the folders of node %s: %w: make room on the disk, and let kwok-dra write there", node, err)
		}
	}
	if found != nil && found.owned == root.owned {
		return root, nil
	}
	content, err := yaml.Marshal(root.owned)
	if err != nil {
		return nil, fmt.Errorf("encode the name of node %s: %w", node, err)
	}
	if err := atomicfile.Write(filepath.Join(root.Path, owner), content, 0o644); err != nil {
		return nil, fmt.Errorf("%w: make room on the disk, and let kwok-dra write there", err)
	}
	return root, nil
}

// List lists the folders that are of nodes, whether these still exist or not.
func (d Directory) List() ([]*Root, error) {
	entries, err := untrusted.ReadDir(string(d), maxNodes)
	if err != nil {
		return nil, fmt.Errorf("list plugins directory: %w", err)
	}
	var roots []*Root
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		if root, err := readOwner(filepath.Join(string(d), entry.Name())); err == nil && root.Path == d.folderOf(root.Name) {
			roots = append(roots, root)
		}
	}
	return roots, nil
}

// Find finds the folder of a node. It returns nil where there is none.
func (d Directory) Find(node string) (*Root, error) {
	found, err := readOwner(d.folderOf(node))
	if errors.Is(err, fs.ErrNotExist) || err == nil && found.Name != node {
		return nil, nil
	}
	return found, err
}

// readOwner reads which node a folder is of.
func readOwner(folder string) (*Root, error) {
	content, err := untrusted.ReadFile(filepath.Join(folder, owner), maxOwner)
	if err != nil {
		return nil, fmt.Errorf("read which node %s is of: %w", folder, err)
	}
	root := &Root{Path: folder}
	// A later version may say more in it.
	if err := yaml.Unmarshal(content, &root.owned); err != nil || root.Name == "" || len(validate.IsPathSegmentName(root.Name)) > 0 {
		return nil, fmt.Errorf("read which node %s is of: file %s has no name of a node: remove the folder", folder, owner)
	}
	return root, nil
}

// Registry is the folder in which plugins register.
func (r *Root) Registry() string { return filepath.Join(r.Path, registry) }

// Plugins is the folder in which plugins keep their files.
func (r *Root) Plugins() string { return filepath.Join(r.Path, plugins) }

// CDI is where the CDI specs of the node's drivers are: those of drivers that see their node's folder
// as the kubelet's are elsewhere.
func (r *Root) CDI() string {
	return r.firstExisting("cdi", filepath.Join("run", "cdi"))
}

// firstExisting is the first of some folders that is there, or the first of them all.
func (r *Root) firstExisting(folders ...string) string {
	for _, folder := range folders {
		if _, err := os.Stat(filepath.Join(r.Path, folder)); err == nil {
			return filepath.Join(r.Path, folder)
		}
	}
	return filepath.Join(r.Path, folders[0])
}

// OnHost is where a file of the node's host is that a driver names: below the node's folder, or
// else below the folder host in it.
func (r *Root) OnHost(named string) string {
	path := filepath.Clean("/" + named)
	if below, isBelow := strings.CutPrefix(path, kubeletRoot+"/"); isBelow {
		return filepath.Join(r.Path, below)
	}
	if below, isBelow := strings.CutPrefix(path, r.nameLink()+"/"); isBelow {
		return filepath.Join(r.Path, below)
	}
	if strings.HasPrefix(path, r.Path+string(filepath.Separator)) {
		return path
	}
	return filepath.Join(r.Path, "host", path)
}

// nameLink is the path of the folder by the name of the node.
func (r *Root) nameLink() string { return filepath.Join(filepath.Dir(r.Path), r.Name) }

// Remove removes the folder with all that is in it, and then the link to it. Symbolic links in it are not
// followed.
func (r *Root) Remove() error {
	err := os.RemoveAll(r.Path)
	if short, linked := os.Readlink(r.nameLink()); err == nil && linked == nil && short == filepath.Base(r.Path) {
		err = os.Remove(r.nameLink())
	}
	if err != nil {
		return fmt.Errorf("remove the folder of node %s: %w", r.Name, err)
	}
	return nil
}

// Endpoint is the path of the socket that a plugin names as its endpoint. It must be below
// the node's folder, also where symbolic links lead elsewhere. It may not be there yet: a plugin
// may listen after it has registered.
func (r *Root) Endpoint(named string) (string, error) {
	path := named
	if below, isBelow := strings.CutPrefix(named, kubeletRoot+"/"); isBelow {
		path = filepath.Join(r.Path, below)
	}
	resolved, err := resolveLinks(filepath.Clean(path))
	if err != nil {
		return "", fmt.Errorf("endpoint %s: %w", named, err)
	}
	if !strings.HasPrefix(resolved, r.Path+string(filepath.Separator)) {
		return "", fmt.Errorf("endpoint %s: must be below %s", named, r.Path)
	}
	info, err := os.Lstat(resolved)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return "", fmt.Errorf("endpoint %s: %w", named, err)
	case info.Mode().Type() != fs.ModeSocket:
		return "", fmt.Errorf("endpoint %s: must be a socket", named)
	}
	return resolved, nil
}

// resolveLinks follows the symbolic links of a path, of which the end may not exist.
func resolveLinks(path string) (string, error) {
	resolved, err := filepath.EvalSymlinks(path)
	parent := filepath.Dir(path)
	if !errors.Is(err, fs.ErrNotExist) || parent == path {
		return resolved, err
	}
	parent, err = resolveLinks(parent)
	return filepath.Join(parent, filepath.Base(path)), err
}

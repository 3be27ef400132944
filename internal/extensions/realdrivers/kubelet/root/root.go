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

	"github.com/kwok-dra/kwok-dra/internal/extensions/util/atomicfile"
	"github.com/kwok-dra/kwok-dra/internal/extensions/util/untrusted"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

const (
	registryFolder = "plugins_registry"
	pluginsFolder  = "plugins"
	// ownerFile says which node a folder belongs to.
	ownerFile = "node"

	// kubeletRoot is the root directory of a kubelet. Drivers with this path built in, which have the folder of their node
	// mounted there, use it in the paths of their endpoints.
	kubeletRoot = "/var/lib/kubelet"

	// maxNodes bounds the entries of the directory, and maxOwnerSize the bytes of an ownerFile.
	maxNodes     = 200_000
	maxOwnerSize = 4 << 10

	// LongestSocket is the longest path that sun_path of unix(7) holds.
	LongestSocket = 107
	// shortNameLength is the length of folders' names for nodes with longer names, until there are no such names left. In a
	// directory of up to 13 characters, such as /run/kwok-dra, the folder's path is then no longer than kubeletRoot, so
	// sockets whose paths fit on a kubelet fit here.
	shortNameLength = 2
	// triesPerLength is how many short names of each length are tried.
	triesPerLength = 10
)

// Directory is the path of the directory with the folders of all nodes.
type Directory string

// OpenDirectory makes the directory, unless it exists.
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

// checkLength rejects a directory whose path leaves no room for those of sockets.
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

// owned is the content of an ownerFile.
type owned struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
}

// folderOf returns the path of a node's folder: a folder with a short name to which a link with the node's name leads, or one
// with the node's name.
func (d Directory) folderOf(node string) string {
	if short, err := os.Readlink(filepath.Join(string(d), node)); err == nil && short == filepath.Base(short) && !strings.HasPrefix(short, ".") {
		return filepath.Join(string(d), short)
	}
	return filepath.Join(string(d), node)
}

// allocateFolder returns the path of a node's folder. If there is none and the node's name is long, it makes a folder with a
// short name, unless it finds no free name.
func (d Directory) allocateFolder(node string) (string, error) {
	link := filepath.Join(string(d), node)
	if path := d.folderOf(node); path != link {
		_, missing := os.Lstat(path)
		found, unread := readOwner(path)
		if isForeign := unread == nil && found.Name != node; missing == nil && !isForeign {
			return path, nil
		}
		if err := os.Remove(link); err != nil { // the folder of the link is gone
			return "", fmt.Errorf("make the folder of node %s: %w", node, err)
		}
	}
	if _, err := os.Lstat(link); len(node) <= shortNameLength || !errors.Is(err, fs.ErrNotExist) {
		return link, nil
	}
	for try := range 3 * triesPerLength {
		short := newShortName(shortNameLength + try/triesPerLength)
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

// newShortName returns a random name that no node has, since names of nodes have no capital letters.
func newShortName(length int) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	name := []byte{letters[rand.IntN(len(letters))]}
	for len(name) < length {
		name = append(name, (letters + "0123456789")[rand.IntN(len(letters)+10)])
	}
	return string(name)
}

// Make makes the folder of a node, unless it exists. The folder belongs to the node's name and outlives the Node object, as
// on a kubelet's machine.
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
	if err := atomicfile.Write(filepath.Join(root.Path, ownerFile), content, 0o644); err != nil {
		return nil, fmt.Errorf("%w: make room on the disk, and let kwok-dra write there", err)
	}
	return root, nil
}

// List lists the folders of nodes, including deleted ones.
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

// Find returns the folder of a node, or nil if there is none.
func (d Directory) Find(node string) (*Root, error) {
	found, err := readOwner(d.folderOf(node))
	if errors.Is(err, fs.ErrNotExist) || err == nil && found.Name != node {
		return nil, nil
	}
	return found, err
}

// readOwner reads which node a folder belongs to.
func readOwner(folder string) (*Root, error) {
	content, err := untrusted.ReadFile(filepath.Join(folder, ownerFile), maxOwnerSize)
	if err != nil {
		return nil, fmt.Errorf("read which node %s is of: %w", folder, err)
	}
	root := &Root{Path: folder}
	// Later versions may add fields.
	if err := yaml.Unmarshal(content, &root.owned); err != nil || root.Name == "" || len(validate.IsPathSegmentName(root.Name)) > 0 {
		return nil, fmt.Errorf("read which node %s is of: file %s has no name of a node: remove the folder", folder, ownerFile)
	}
	return root, nil
}

// Registry is the folder in which plugins register.
func (r *Root) Registry() string { return filepath.Join(r.Path, registryFolder) }

// Plugins is the folder in which plugins keep their files.
func (r *Root) Plugins() string { return filepath.Join(r.Path, pluginsFolder) }

// CDI is the folder with the CDI specs of the node's drivers: cdi, or run/cdi if only that exists.
func (r *Root) CDI() string {
	folder, nested := filepath.Join(r.Path, "cdi"), filepath.Join(r.Path, "run", "cdi")
	if _, err := os.Stat(folder); err == nil {
		return folder
	}
	if _, err := os.Stat(nested); err == nil {
		return nested
	}
	return folder
}

// OnHost returns the path of a file of the node's host that a driver names: below the node's folder, or below the folder host
// in it.
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

// nameLink is the path of the folder by the name of its node.
func (r *Root) nameLink() string { return filepath.Join(filepath.Dir(r.Path), r.Name) }

// Remove removes the folder with its content, and then the link to it. It follows no symbolic links in the folder.
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

// Endpoint resolves the path of a socket that a plugin names as its endpoint. The resolved path must be below the node's
// folder. The socket need not exist yet, since a plugin may listen after it has registered.
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

// resolveLinks follows the symbolic links of a path whose last elements may not exist.
func resolveLinks(path string) (string, error) {
	resolved, err := filepath.EvalSymlinks(path)
	parent := filepath.Dir(path)
	if !errors.Is(err, fs.ErrNotExist) || parent == path {
		return resolved, err
	}
	parent, err = resolveLinks(parent)
	return filepath.Join(parent, filepath.Base(path)), err
}

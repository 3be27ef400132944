package root

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kwok-dra/kwok-dra/internal/util/namedfile"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// newDirectory makes a directory whose path is short enough for sockets.
func newDirectory(t *testing.T) Directory {
	t.Helper()
	path, err := os.MkdirTemp("", "r") //nolint:usetesting // its paths are too long for sockets
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(path)) })
	directory, err := OpenDirectory(path)
	require.NoError(t, err)
	return directory
}

func newRoot(t *testing.T) *Root {
	t.Helper()
	made, err := newDirectory(t).Make("node", "uid")
	require.NoError(t, err)
	return made
}

// listen makes a socket.
func listen(t *testing.T, path string) net.Listener {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() }) // some tests have closed it
	return listener
}

// TestMake: the folder of a node is made once, and stays for a later node of its name, as below a
// kubelet that registers once more.
func TestMake(t *testing.T) {
	t.Parallel()
	directory := newDirectory(t)
	made, err := directory.Make("a", "1")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(string(directory), "a"), made.Path)
	require.DirExists(t, made.Registry())
	require.DirExists(t, filepath.Join(made.Path, "plugins"))
	file := filepath.Join(made.Path, "plugins", "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))

	_, err = directory.Make("a", "1")
	require.NoError(t, err)
	require.FileExists(t, file, "after a restart")

	_, err = directory.Make("a", "2")
	require.NoError(t, err)
	require.FileExists(t, file, "what a driver has there outlives the Node object")
	found, err := directory.Find("a")
	require.NoError(t, err)
	require.Equal(t, types.UID("2"), found.UID)
}

// TestOpenDirectory: there is room for the paths of sockets, also where a link leads to.
func TestOpenDirectory(t *testing.T) {
	t.Parallel()
	require.Equal(t, v1alpha1.MaxPluginsDir, LongestSocket-len("/"+registryFolder+"/")-50-len("/")-shortNameLength, "50 characters are left for the names of sockets")
	directory := string(newDirectory(t))
	long := filepath.Join(directory, strings.Repeat("a", v1alpha1.MaxPluginsDir))
	_, err := OpenDirectory(long)
	require.ErrorContains(t, err, "choose one of at most 36 characters")
	require.NoError(t, os.Mkdir(long, 0o755))
	require.NoError(t, os.Symlink(long, filepath.Join(directory, "l")))
	_, err = OpenDirectory(filepath.Join(directory, "l"))
	require.ErrorContains(t, err, "plugins directory "+long+": is")
}

// TestOwnerIsNoFile: what is put in the place of the file that names the node holds up nobody, and
// nobody takes the folder for another one's.
func TestOwnerIsNoFile(t *testing.T) {
	t.Parallel()
	for want, put := range map[string]func(path string) error{
		"it is a FIFO":          func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"it is a symbolic link": func(path string) error { return os.Symlink("/dev/zero", path) },
		"more than 4096 bytes":  func(path string) error { return os.WriteFile(path, make([]byte, maxOwnerSize+1), 0o600) },
	} {
		directory := newDirectory(t)
		made, err := directory.Make("a", "1")
		require.NoError(t, err)
		require.NoError(t, os.Remove(filepath.Join(made.Path, ownerFile)))
		require.NoError(t, put(filepath.Join(made.Path, ownerFile)))
		_, err = directory.Make("a", "1")
		require.ErrorContains(t, err, want)
		_, err = directory.Find("a")
		require.ErrorContains(t, err, want)
		roots, err := directory.List()
		require.NoError(t, err)
		require.Empty(t, roots)
	}
}

// TestLongNames: whatever a node is called, sockets have as much room as below /var/lib/kubelet, and the
// folder has the node's name for people.
func TestLongNames(t *testing.T) {
	t.Parallel()
	var directory Directory
	for path := ""; directory == ""; { // as long as /run/kwok-dra
		path = fmt.Sprintf("/tmp/r%07d", rand.IntN(10_000_000))
		if os.Mkdir(path, 0o750) == nil {
			t.Cleanup(func() { require.NoError(t, os.RemoveAll(path)) })
			directory = Directory(path)
		}
	}
	const driver, uid = "a-driver-of-27-chars.exampl", "0f5ca1ab-1ab0-4ca5-8e00-000000000000"
	var want []*Root
	for _, length := range []int{3, 25, 36, 63, 252, 253} {
		node := strings.Repeat("a", length)
		made, err := directory.Make(node, "1")
		require.NoError(t, err)
		require.LessOrEqual(t, len(made.Path), len(kubeletRoot))
		listen(t, filepath.Join(made.Registry(), driver+"-"+uid+"-reg.sock"))
		listen(t, filepath.Join(made.Registry(), strings.Repeat("d", 64)+"-reg.sock"))
		listen(t, filepath.Join(made.Plugins(), driver, "dra-"+uid+".sock"))

		named := filepath.Join(string(directory), node)
		require.DirExists(t, filepath.Join(named, "plugins_registry"))
		endpoint, err := made.Endpoint(filepath.Join(named, "plugins", "e.sock"))
		require.NoError(t, err)
		require.Equal(t, filepath.Join(made.Plugins(), "e.sock"), endpoint)
		require.Equal(t, filepath.Join(made.Plugins(), "f"), made.OnHost(filepath.Join(named, "plugins", "f")))

		again, err := directory.Make(node, "1")
		require.NoError(t, err)
		require.Equal(t, made, again)
		found, err := directory.Find(node)
		require.NoError(t, err)
		require.Equal(t, made, found)
		want = append(want, made)
	}
	roots, err := directory.List()
	require.NoError(t, err)
	require.ElementsMatch(t, want, roots)

	later, err := directory.Make(want[0].Name, "2")
	require.NoError(t, err)
	require.DirExists(t, filepath.Join(string(directory), later.Name, "plugins"))
	for _, made := range append(want[1:], later) {
		require.NoError(t, made.Remove())
	}
	left, err := os.ReadDir(string(directory))
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestLinksOfOthers: a link whose folder is gone, or is another node's by now, is not followed.
func TestLinksOfOthers(t *testing.T) {
	t.Parallel()
	directory := newDirectory(t)
	other, err := directory.Make("another-node", "1")
	require.NoError(t, err)
	for node, folder := range map[string]string{"gone-node": "ZZZ", "moved-node": filepath.Base(other.Path)} {
		require.NoError(t, os.Symlink(folder, filepath.Join(string(directory), node)))
		found, err := directory.Find(node)
		require.NoError(t, err)
		require.Nil(t, found)
		made, err := directory.Make(node, "1")
		require.NoError(t, err)
		require.NotEqual(t, folder, filepath.Base(made.Path))
	}
	for i, target := range []string{t.TempDir(), "..", ".", "../a", "AB/plugins"} {
		node := fmt.Sprint("linked-node-", i)
		require.NoError(t, os.Symlink(target, filepath.Join(string(directory), node)))
		require.Equal(t, filepath.Join(string(directory), node), directory.folderOf(node), "only folders beside it have short names")
	}
}

// TestShortNames: when the shortest are used up there are longer ones, and no node has one as its name.
func TestShortNames(t *testing.T) {
	t.Parallel()
	directory := newDirectory(t)
	names := map[string]bool{}
	for len(names) < 26*36 {
		name := newShortName(shortNameLength)
		require.NotEmpty(t, validation.IsDNS1123Subdomain(name))
		if !names[name] {
			require.NoError(t, os.Mkdir(filepath.Join(string(directory), name), 0o750))
		}
		names[name] = true
	}
	made, err := directory.Make("node-0", "1")
	require.NoError(t, err)
	require.Len(t, filepath.Base(made.Path), shortNameLength+1)
}

// TestForeignFolders: what kwok-dra has not made it neither lists nor removes.
func TestForeignFolders(t *testing.T) {
	t.Parallel()
	directory := newDirectory(t)
	foreign := filepath.Join(string(directory), "a")
	require.NoError(t, os.Mkdir(foreign, 0o755))
	found, err := directory.Find("a")
	require.NoError(t, err)
	require.Nil(t, found)
	roots, err := directory.List()
	require.NoError(t, err)
	require.Empty(t, roots)

	require.NoError(t, os.WriteFile(filepath.Join(foreign, "node"), []byte("name: b\nuid: c\n"), 0o600))
	_, err = directory.Make("a", "1")
	require.ErrorContains(t, err, "it is of node b: remove it")
	require.NoError(t, os.WriteFile(filepath.Join(foreign, "node"), []byte("x"), 0o600))
	_, err = directory.Make("a", "1")
	require.ErrorContains(t, err, "has no name of a node: remove the folder")
}

// TestOwnerOfALaterVersion: after a later version has said more of a node, its folder is as good as before.
func TestOwnerOfALaterVersion(t *testing.T) {
	t.Parallel()
	directory := newDirectory(t)
	made, err := directory.Make("a", "1")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(made.Path, ownerFile), []byte("name: a\nuid: \"1\"\nlater: true\n"), 0o600))
	found, err := directory.Find("a")
	require.NoError(t, err)
	require.Equal(t, made, found)
}

// TestForgedOwner: a driver cannot have the folder of its node stand for that of another one, or for one
// elsewhere.
func TestForgedOwner(t *testing.T) {
	t.Parallel()
	directory := newDirectory(t)
	made, err := directory.Make("a", "1")
	require.NoError(t, err)
	for name, want := range map[string]string{"b": "it is of node b", "../a": "has no name of a node", "x/../a": "has no name of a node", "/": "has no name of a node", "..": "has no name of a node"} {
		require.NoError(t, os.WriteFile(filepath.Join(made.Path, ownerFile), []byte("name: "+name+"\nuid: x\n"), 0o600))
		roots, err := directory.List()
		require.NoError(t, err)
		require.Empty(t, roots, name)
		_, err = directory.Make("a", "1")
		require.ErrorContains(t, err, want)
	}
}

// TestSockets: sockets are found wherever they are in the registry, and nothing else is.
func TestSockets(t *testing.T) {
	t.Parallel()
	r := newRoot(t)
	first := listen(t, filepath.Join(r.Registry(), "a.sock"))
	listen(t, filepath.Join(r.Registry(), "folder", "b.sock"))
	listen(t, filepath.Join(r.Registry(), ".hidden", "c.sock"))
	listen(t, filepath.Join(r.Registry(), ".d.sock"))
	outside := filepath.Join(r.Path, "e.sock")
	listen(t, outside)
	require.NoError(t, os.Symlink(outside, filepath.Join(r.Registry(), "f.sock")))
	require.NoError(t, os.WriteFile(filepath.Join(r.Registry(), "g.sock"), nil, 0o600))

	sockets, err := r.Sockets()
	require.NoError(t, err)
	require.Len(t, sockets, 2)
	require.Equal(t, filepath.Join(r.Registry(), "a.sock"), sockets[0].Path)
	require.Equal(t, filepath.Join(r.Registry(), "folder", "b.sock"), sockets[1].Path)

	again, err := r.Sockets()
	require.NoError(t, err)
	require.True(t, sockets[0].Is(again[0]))
	require.NoError(t, first.Close())
	listen(t, filepath.Join(r.Registry(), "a.sock"))
	later, err := r.Sockets()
	require.NoError(t, err)
	require.False(t, sockets[0].Is(later[0]), "another one under its name")
	require.True(t, sockets[1].Is(later[1]))
}

// TestFlood: a driver that floods the registry takes no socket from another one.
func TestFlood(t *testing.T) {
	t.Parallel()
	r := newRoot(t)
	listen(t, filepath.Join(r.Registry(), "z.sock"))
	for i := range maxSockets {
		require.NoError(t, os.WriteFile(filepath.Join(r.Registry(), fmt.Sprintf("a-%04d", i)), nil, 0o600))
	}
	sockets, err := r.Sockets()
	require.NoError(t, err)
	require.Len(t, sockets, 1, "files are no sockets")
	for i := range maxSockets {
		listen(t, filepath.Join(r.Registry(), fmt.Sprintf("b-%04d", i)))
	}
	sockets, err = r.Sockets()
	require.NoError(t, err)
	require.Len(t, sockets, maxSockets)
	require.True(t, slices.ContainsFunc(sockets, func(s Socket) bool { return s.Path == filepath.Join(r.Registry(), "z.sock") }))
}

// TestFloodOfFiles: a registry with too much in it is an error rather than work without an end.
func TestFloodOfFiles(t *testing.T) {
	t.Parallel()
	r := newRoot(t)
	for i := range 3 {
		listen(t, filepath.Join(r.Registry(), strconv.Itoa(i), "a.sock"))
	}
	left := 6
	sockets, err := r.socketsIn(r.Registry(), &left)
	require.NoError(t, err)
	require.Len(t, sockets, 3)
	left = 5
	_, err = r.socketsIn(r.Registry(), &left)
	require.ErrorIs(t, err, namedfile.ErrTooLarge, "in all folders together")
}

// TestHasPlugin: a socket that a plugin has left is no plugin.
func TestHasPlugin(t *testing.T) {
	t.Parallel()
	r := newRoot(t)
	require.False(t, r.HasPlugin(t.Context()))
	left := listen(t, filepath.Join(r.Registry(), "left.sock"))
	left.(*net.UnixListener).SetUnlinkOnClose(false)
	require.True(t, r.HasPlugin(t.Context()))
	require.NoError(t, left.Close())
	require.FileExists(t, filepath.Join(r.Registry(), "left.sock"))
	require.False(t, r.HasPlugin(t.Context()))

	// A driver that knows the folder by a shorter path may make a socket whose path is too long here.
	long := &Root{Path: filepath.Join(filepath.Dir(r.Path), strings.Repeat("l", LongestSocket))}
	require.NoError(t, os.Symlink(r.Path, long.Path))
	require.False(t, long.HasPlugin(t.Context()))
	listen(t, filepath.Join(r.Registry(), "a.sock"))
	require.True(t, long.HasPlugin(t.Context()))

	require.NoError(t, r.Remove())
	require.False(t, r.HasPlugin(t.Context()))
}

// TestEndpoint: a plugin is called through a socket below the folder of its node, and no other.
func TestEndpoint(t *testing.T) {
	t.Parallel()
	r := newRoot(t)
	inside := filepath.Join(r.Path, "plugins", "d", "dra.sock")
	listen(t, inside)
	outside := filepath.Join(filepath.Dir(r.Path), "o.sock")
	listen(t, outside)
	require.NoError(t, os.Symlink(outside, filepath.Join(r.Path, "plugins", "link.sock")))
	require.NoError(t, os.Symlink(inside, filepath.Join(r.Path, "plugins", "inner.sock")))
	require.NoError(t, os.Symlink(outside+".later", filepath.Join(r.Path, "plugins", "dangling")))
	require.NoError(t, os.WriteFile(filepath.Join(r.Path, "plugins", "file"), nil, 0o600))

	later := filepath.Join(r.Path, "plugins", "later", "dra.sock")
	endpoint, err := r.Endpoint(later)
	require.NoError(t, err, "the plugin may listen later")
	require.Equal(t, later, endpoint)
	for _, named := range []string{inside, "/var/lib/kubelet/plugins/d/dra.sock", filepath.Join(r.Path, "plugins", "inner.sock")} {
		endpoint, err := r.Endpoint(named)
		require.NoError(t, err)
		require.Equal(t, inside, endpoint)
	}
	for named, want := range map[string]string{
		outside:                                    "must be below " + r.Path,
		filepath.Join(r.Path, "..", "o.sock"):      "must be below " + r.Path,
		"/var/lib/kubelet/../o.sock":               "must be below " + r.Path,
		filepath.Join(r.Path, "plugins/link.sock"): "must be below " + r.Path,
		filepath.Join(r.Path, "plugins", "file"):   "must be a socket",
		filepath.Join(r.Path, "plugins/dangling"):  "must be a socket",
	} {
		_, err := r.Endpoint(named)
		require.ErrorContains(t, err, want, named)
	}
}

// TestHost: what a driver names of its host is in the folder of the node.
func TestHost(t *testing.T) {
	t.Parallel()
	r, err := newDirectory(t).Make("n", "uid")
	require.NoError(t, err)
	for named, want := range map[string]string{
		"/etc/dra/file1":                 r.Path + "/host/etc/dra/file1",
		"../../etc/dra/file1":            r.Path + "/host/etc/dra/file1",
		"/var/lib/kubelet/plugins/d/f":   r.Path + "/plugins/d/f",
		"/var/lib/kubelet/../../../etc":  r.Path + "/host/etc",
		r.Path + "/plugins/d/f":          r.Path + "/plugins/d/f",
		r.Path + "/../other/f":           r.Path + "/host" + filepath.Dir(r.Path) + "/other/f",
		"/var/lib/kubelet-of-another/f1": r.Path + "/host/var/lib/kubelet-of-another/f1",
	} {
		require.Equal(t, want, r.OnHost(named), named)
	}
	require.Equal(t, r.Path+"/cdi", r.CDI())
	require.NoError(t, os.MkdirAll(r.Path+"/run/cdi", 0o750))
	require.Equal(t, r.Path+"/run/cdi", r.CDI())
	require.NoError(t, os.MkdirAll(r.Path+"/cdi", 0o750))
	require.Equal(t, r.Path+"/cdi", r.CDI())
}

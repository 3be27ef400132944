package nodeserver

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// hostRoots are the folders of a node that have a place in its folder below the directory of plugins, as
// docs/guides/real-drivers.md lays it out.
var hostRoots = []struct{ host, folder string }{
	{"/var/lib/kubelet", ""},
	{"/var/run", "run"},
	{"/run", "run"},
}

// mount is a folder in a container, and the local one that it leads to.
type mount struct{ inside, local string }

// mountsOf returns where the hostPath volumes of a container lead to, deepest paths first. Volumes that
// have no place in the node's folder are left out.
func mountsOf(pod *corev1.Pod, container, folder string) []mount {
	sources := map[string]string{}
	for _, volume := range pod.Spec.Volumes {
		if volume.HostPath == nil {
			continue
		}
		if local, ok := localPath(volume.HostPath.Path, folder); ok {
			sources[volume.Name] = local
		}
	}
	var mounts []mount
	for _, c := range pod.Spec.Containers {
		if c.Name != container && container != "" {
			continue
		}
		for _, m := range c.VolumeMounts {
			if local, ok := sources[m.Name]; ok {
				mounts = append(mounts, mount{path.Clean(m.MountPath), local})
			}
		}
	}
	slices.SortFunc(mounts, func(a, b mount) int { return len(b.inside) - len(a.inside) })
	return mounts
}

// localPath returns where a path of a node is in the node's folder.
func localPath(host, folder string) (string, bool) {
	host = path.Clean(host)
	for _, root := range hostRoots {
		if below, ok := strings.CutPrefix(host+"/", root.host+"/"); ok {
			return filepath.Join(folder, root.folder, below), true
		}
	}
	return "", false
}

// translate replaces paths of the container in an argument of a command, which may be a script. A path
// begins where no character of a path is in front of it.
func translate(argument string, mounts []mount) string {
	var out strings.Builder
	for rest := argument; rest != ""; {
		if out.Len() == 0 || !isPathCharacter(argument[len(argument)-len(rest)-1]) {
			if m, ok := mountAt(rest, mounts); ok {
				out.WriteString(m.local)
				rest = rest[len(m.inside):]
				continue
			}
		}
		out.WriteByte(rest[0])
		rest = rest[1:]
	}
	return out.String()
}

// mountAt returns the mount whose path a text begins with.
func mountAt(text string, mounts []mount) (mount, bool) {
	for _, m := range mounts {
		below, ok := strings.CutPrefix(text, m.inside)
		if ok && (below == "" || below[0] == '/' || !isPathCharacter(below[0])) {
			return m, true
		}
	}
	return mount{}, false
}

func isPathCharacter(c byte) bool {
	return c == '/' || c == '.' || c == '-' || c == '_' ||
		'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

package view

import (
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// Limits of what is written for a Pod. The largest part, its variables, is also in an API object.
const (
	mostInFile = 64 << 10
	mostInPod  = 512 << 10
)

// content is what is in the folder of a Pod, by path below the folder.
type content struct {
	Folders []string
	Files   map[string]string
	// Links are symbolic links to what the host has.
	Links map[string]string
}

// planned is what has to be written for a Pod.
type planned struct {
	content
	Objects []*unstructured.Unstructured
}

// wantsView reports whether a view has to be written for a Pod: its claims are prepared, and it has not
// ended. A view that exists stays until the Pod is gone, even if its claims are deleted before.
func wantsView(pod *corev1.Pod) bool {
	return facts.ReadyToStart(pod) == corev1.ConditionTrue && !facts.IsTerminal(pod) && pod.DeletionTimestamp == nil
}

// hosts is where the files of nodes are.
type hosts struct {
	Directory
	// shared is a directory with folders of nodes, for real drivers, or "".
	shared string
}

// hostPath returns where a file of a node is: below the shared directory if a driver has put it there, or
// else below the folder that stands in for the hosts of all nodes.
func (h hosts) hostPath(name string) string {
	name = path.Clean("/" + name)
	if h.shared != "" && strings.HasPrefix(name, h.shared+"/") {
		return name
	}
	return filepath.Join(h.hostFolder(), name)
}

// planFor plans the folder and the objects of a Pod.
func planFor(pod *corev1.Pod, containers []containerview.Container, h hosts) (*planned, error) {
	p := &planned{content: content{Files: map[string]string{}, Links: map[string]string{}}}
	since := preparedAt(pod)
	for i := range containers {
		p.addFiles(&containers[i], commandOf(pod, containers[i].Name), since)
		p.addRoot(&containers[i], h)
	}
	if err := p.checkSize(); err != nil {
		return nil, fmt.Errorf("view of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	p.Objects = objectsOf(pod, containers, h.Directory)
	return p, nil
}

// commandOf returns the command that the Pod gives to a container, or nil.
func commandOf(pod *corev1.Pod, name string) []string {
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if container.Name == name {
			return container.Command
		}
	}
	return nil
}

// preparedAt returns when the claims of a Pod were prepared.
func preparedAt(pod *corev1.Pod) time.Time {
	if condition := facts.PodCondition(pod, corev1.PodReadyToStartContainers); condition.Status != "" {
		return condition.LastTransitionTime.Time
	}
	return pod.CreationTimestamp.Time
}

// The files of a container, and the folder with what it has mounted.
const (
	logFile    = "log"
	envFile    = "env"
	rootFolder = "root"
)

func (c *content) addFiles(container *containerview.Container, command []string, since time.Time) {
	c.Files[path.Join(container.Name, logFile)] = criLog(since, exportVariables(container.Env, command))
	var lines strings.Builder
	for _, variable := range container.Env {
		lines.WriteString(variable + "\n")
	}
	c.Files[path.Join(container.Name, envFile)] = lines.String()
	for name, text := range nvidiaSMIFiles(container) {
		c.Files[path.Join(container.Name, name)] = text
	}
}

// addRoot adds a link for each mount of a container, a file for device metadata that a template makes,
// and an empty file for each device node. A mount
// inside another mount is left out: the folder of the host decides what is there.
func (c *content) addRoot(container *containerview.Container, h hosts) {
	root := path.Join(container.Name, rootFolder)
	c.Folders = append(c.Folders, root) // programs begin there
	for i := range container.Mounts {
		mount := &container.Mounts[i]
		at := pathBelow(root, mount.ContainerPath)
		if !c.isFree(root, at) {
			continue
		}
		k := slices.IndexFunc(container.MetadataFiles, func(file containerview.MetadataFile) bool { return file.Path == mount.ContainerPath })
		if k < 0 {
			c.Links[at] = h.hostPath(mount.HostPath)
			continue
		}
		c.Files[at] = container.MetadataFiles[k].Content
	}
	for i := range container.DeviceNodes {
		if at := pathBelow(root, container.DeviceNodes[i].Path); c.isFree(root, at) {
			c.Files[at] = ""
		}
	}
}

// pathBelow joins a folder and a path of a container, so that the path cannot lead out of the folder.
func pathBelow(folder, name string) string {
	return path.Join(folder, path.Clean("/"+name))
}

// isFree reports whether nothing is at a path, above it or below it.
func (c *content) isFree(root, at string) bool {
	if at == root {
		return false
	}
	above := func(there string) bool {
		return there == at || strings.HasPrefix(there, at+"/") || strings.HasPrefix(at, there+"/")
	}
	taken := slices.Concat(slices.Collect(maps.Keys(c.Files)), slices.Collect(maps.Keys(c.Links)))
	return !slices.ContainsFunc(taken, above)
}

// totalSize returns the bytes of all files.
func (c *content) totalSize() (all int) {
	for _, text := range c.Files {
		all += len(text)
	}
	return all
}

func (c *content) checkSize() error {
	for _, name := range slices.Sorted(maps.Keys(c.Files)) {
		if size := len(c.Files[name]); size > mostInFile {
			return fmt.Errorf("%s would have %d bytes, more than %d: have the container or the template give it shorter variables", name, size, mostInFile)
		}
	}
	if size := c.totalSize(); size > mostInPod {
		return fmt.Errorf("its files would have %d bytes, more than %d: have the containers or the templates give it fewer variables", size, mostInPod)
	}
	return nil
}

package view

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/observe"
)

// mostOfAll bounds the bytes of the files of all Pods. 10,000 Pods with some GPUs take a tenth of it.
const mostOfAll = 512 << 20

// folders knows the folders of Pods in one directory.
type folders struct {
	// named is the directory as the user names it.
	named     string
	directory Directory

	mu   sync.Mutex
	have map[types.NamespacedName]folder
	size int
}

// openFolders makes the directory, and lists the folders of earlier runs.
func openFolders(directory string) (*folders, error) {
	d, err := OpenDirectory(directory)
	if err != nil {
		return nil, err
	}
	f := &folders{named: directory, directory: d, have: map[types.NamespacedName]folder{}}
	found, err := d.listFolders()
	for _, folder := range found {
		if other := f.folderOf(folder.podKey()); other != nil { // an earlier Pod of that name, or a later one
			if err := d.removeFolder(other.UID); err != nil {
				return nil, err
			}
		}
		f.noteFolder(&folder)
	}
	return f, err
}

// folderOf returns the folder of a Pod, or nil.
func (f *folders) folderOf(key types.NamespacedName) *folder {
	f.mu.Lock()
	defer f.mu.Unlock()
	if folder, ok := f.have[key]; ok {
		return &folder
	}
	return nil
}

func (f *folders) noteFolder(folder *folder) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.size += folder.Size - f.have[folder.podKey()].Size
	f.have[folder.podKey()] = *folder
}

// podKeys returns the Pods that have folders.
func (f *folders) podKeys() []types.NamespacedName {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Keys(f.have))
}

// hasFolder reports whether a Pod has a folder.
func (f *folders) hasFolder(pod *corev1.Pod) bool {
	found := f.folderOf(observe.Key(pod))
	return found != nil && found.UID == pod.UID
}

// writeFolder writes the folder of a Pod, unless it has one: what is injected later does not reach a
// running container either.
func (f *folders) writeFolder(pod *corev1.Pod, p *planned) error {
	if f.hasFolder(pod) {
		return nil
	}
	made := folder{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Size: p.totalSize()}
	f.mu.Lock()
	all := f.size
	f.mu.Unlock()
	if all+made.Size > mostOfAll {
		return fmt.Errorf("view of pod %s: the files of all pods would have more than %d bytes: run fewer pods, or several replicas of kwok with kwok-dra", made.podKey(), mostOfAll)
	}
	if err := f.directory.writeFolder(&made, &p.content); err != nil {
		return err
	}
	f.noteFolder(&made)
	return nil
}

// removeFolder removes the folder of a Pod, if it has one.
func (f *folders) removeFolder(key types.NamespacedName) error {
	found := f.folderOf(key)
	if found == nil {
		return nil
	}
	if err := f.directory.removeFolder(found.UID); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.size -= found.Size
	delete(f.have, key)
	return nil
}

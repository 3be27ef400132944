package view

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/pkg/observe"
)

// mostOfAll is what the files of all Pods may have together. Those of 10,000 Pods with some GPUs take
// a tenth of it.
const mostOfAll = 512 << 20

// folders are those of the Pods in one directory.
type folders struct {
	// named is the directory as the user names it.
	named     string
	directory Directory

	mu   sync.Mutex
	have map[types.NamespacedName]folder
	size int
}

// openFolders makes the directory, and finds what earlier runs have left there.
func openFolders(directory string) (*folders, error) {
	d, err := OpenDirectory(directory)
	if err != nil {
		return nil, err
	}
	f := &folders{named: directory, directory: d, have: map[types.NamespacedName]folder{}}
	found, err := d.list()
	for _, folder := range found {
		if other := f.get(folder.key()); other != nil { // an earlier Pod of that name, or a later one
			if err := d.remove(other.UID); err != nil {
				return nil, err
			}
		}
		f.note(&folder)
	}
	return f, err
}

// get returns the folder of a Pod, or nil.
func (f *folders) get(key types.NamespacedName) *folder {
	f.mu.Lock()
	defer f.mu.Unlock()
	if folder, ok := f.have[key]; ok {
		return &folder
	}
	return nil
}

func (f *folders) note(folder *folder) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.size += folder.Size - f.have[folder.key()].Size
	f.have[folder.key()] = *folder
}

// keys are the Pods that have folders.
func (f *folders) keys() []types.NamespacedName {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Keys(f.have))
}

// has reports whether a Pod has a folder.
func (f *folders) has(pod *corev1.Pod) bool {
	found := f.get(observe.Key(pod))
	return found != nil && found.UID == pod.UID
}

// write makes the folder of a Pod, unless it has one: nothing that is injected later reaches a
// container.
func (f *folders) write(pod *corev1.Pod, p *planned) error {
	if f.has(pod) {
		return nil
	}
	made := folder{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Size: p.size()}
	f.mu.Lock()
	all := f.size
	f.mu.Unlock()
	if all+made.Size > mostOfAll {
		return fmt.Errorf("view of pod %s: the files of all pods would have more than %d bytes: run fewer pods, or several replicas of kwok with kwok-dra", made.key(), mostOfAll)
	}
	if err := f.directory.write(&made, &p.content); err != nil {
		return err
	}
	f.note(&made)
	return nil
}

// remove removes the folder of a Pod, if there is one.
func (f *folders) remove(key types.NamespacedName) error {
	found := f.get(key)
	if found == nil {
		return nil
	}
	if err := f.directory.remove(found.UID); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.size -= found.Size
	delete(f.have, key)
	return nil
}

package claiminfo

import (
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/root"
)

// Find opens the folder and the checkpoint of a node below kwok-dra's plugins directory.
func Find(directory string, node *corev1.Node) (*Cache, *root.Root, error) {
	path, err := filepath.Abs(directory)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("find %s: %w", directory, err)
	}
	folder, err := root.Directory(path).Find(node.Name)
	if err != nil {
		return nil, nil, err
	}
	if folder == nil {
		return nil, nil, fmt.Errorf("%s has no folder of node %s: give the directory that kwok-dra has as --plugins-dir", directory, node.Name)
	}
	cache, err := Open(filepath.Join(folder.Path, File))
	return cache, folder, err
}

package why

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/plugin"
	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/root"
)

// askTimeout is how long a plugin has to say which driver it is of.
const askTimeout = 2 * time.Second

// plugins are those with sockets in the directory that kwok-dra has as --plugins-dir.
type plugins struct {
	directory root.Directory
	// drivers are those that answer, by node.
	drivers map[string][]string
}

func openPlugins(directory string) (*plugins, error) {
	path, err := filepath.Abs(directory)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return nil, fmt.Errorf("find --plugins-dir %s: %w", directory, err)
	}
	return &plugins{root.Directory(path), map[string][]string{}}, nil
}

// isRegistered reports whether a plugin of a driver answers in the folder of a node.
func (p *plugins) isRegistered(ctx context.Context, node *corev1.Node, driver string) (bool, error) {
	if drivers, known := p.drivers[node.Name]; known {
		return slices.Contains(drivers, driver), nil
	}
	folder, err := p.directory.Find(node.Name)
	if err != nil {
		return false, err
	}
	if folder == nil || folder.UID != node.UID {
		return false, fmt.Errorf("%s has no folder of node %s: give the directory that kwok-dra has as --plugins-dir", p.directory, node.Name)
	}
	sockets, err := folder.Sockets()
	if err != nil {
		return false, err
	}
	var drivers []string
	for _, socket := range sockets {
		asking, cancel := context.WithTimeout(ctx, askTimeout)
		answer, err := plugin.DriverAt(asking, socket.Path)
		cancel()
		if err == nil { // kwok-dra cannot register a plugin that does not answer either
			drivers = append(drivers, answer)
		}
	}
	p.drivers[node.Name] = drivers
	return slices.Contains(drivers, driver), nil
}

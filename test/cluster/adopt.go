package cluster

import (
	"fmt"
	"os"
	"path/filepath"
)

// Adopt returns a path by which a program is to be started that belongs to the
// cluster. Processes started by it end with the cluster, however that ends.
func (c *Cluster) Adopt(program string) (string, error) {
	program, err := filepath.Abs(program)
	if err != nil {
		return "", fmt.Errorf("find program %s: %w", program, err)
	}
	link := c.path("bin", filepath.Base(program))
	if err := os.Remove(link); err != nil && !os.IsNotExist(err) {
		return "", fmt.Errorf("adopt program %s: %w", program, err)
	}
	if err := os.Symlink(program, link); err != nil {
		return "", fmt.Errorf("adopt program %s: %w", program, err)
	}
	return link, nil
}

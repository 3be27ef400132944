package cluster

import (
	"fmt"
	"os"
	"path/filepath"
)

// Adopt returns a path by which a program is to be started that belongs to the
// cluster. Processes started by it end with the cluster, however that ends.
func (f folder) Adopt(program string) (string, error) {
	return f.linkProgram(program, f.pathOf("bin", filepath.Base(program)))
}

// linkProgram makes link such a path.
func (f folder) linkProgram(program, link string) (string, error) {
	target, err := filepath.Abs(program)
	if err != nil {
		return "", fmt.Errorf("find program %s: %w", program, err)
	}
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		return "", fmt.Errorf("adopt program %s: %w", program, err)
	}
	// Made elsewhere and moved, so that whoever starts it meanwhile finds one.
	scratch, err := os.MkdirTemp(f.home, "adopt-")
	if err != nil {
		return "", fmt.Errorf("adopt program %s: %w", program, err)
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	fresh := filepath.Join(scratch, "link")
	if err := os.Symlink(target, fresh); err != nil {
		return "", fmt.Errorf("adopt program %s: %w", program, err)
	}
	if err := os.Rename(fresh, link); err != nil {
		return "", fmt.Errorf("adopt program %s: %w", program, err)
	}
	return link, nil
}

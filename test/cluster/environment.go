package cluster

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Environment are the lines by which a shell uses the cluster, and its kubectl.
func (c *Cluster) Environment() string {
	return fmt.Sprintf("export KUBECONFIG=%s\nexport PATH=%s:$PATH", quote(c.Kubeconfig()), quote(filepath.Dir(c.Binary("kubectl"))))
}

// quote makes text one word of a shell.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

package cluster

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Environment are the lines by which a shell uses the cluster, and its kubectl.
func (c *Cluster) Environment() string {
	return fmt.Sprintf("export KUBECONFIG=%s\nexport PATH=%s:$PATH", quoteWord(c.Kubeconfig()), quoteWord(filepath.Dir(c.Binary("kubectl"))))
}

// quoteWord makes text one word of a shell.
func quoteWord(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

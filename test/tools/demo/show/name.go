package show

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// Name is the name of the cluster of this checkout's and this user's demo. There
// is one at a time, so "make demo-down" removes any, and nobody else's.
func Name() string {
	checkout := sidecar.Root()
	if resolved, err := filepath.EvalSymlinks(checkout); err == nil {
		checkout = resolved
	}
	return nameOf(os.Getuid(), checkout)
}

func nameOf(user int, checkout string) string {
	return fmt.Sprintf("demo-%x", sha256.Sum256(fmt.Appendf(nil, "%d %s", user, checkout)))[:len("demo-")+8]
}

// Command mutants is a stub to be replaced.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kwok-dra/kwok-dra/test/cluster/build"
)

func main() {
	for _, patch := range os.Args[1:] {
		path, err := build.EnsurePatched(context.Background(), build.Patched{Kubernetes: "v1.36.3", Program: "kube-scheduler", Patch: patch}, os.Stderr)
		fmt.Println(filepath.Base(patch), path, err)
	}
}

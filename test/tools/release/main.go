// Command release makes all that users install, in dist: programs, the image of
// the sidecar, a manifest, a Helm chart, an SBOM, release notes and checksums. The same
// commit and version give the same bytes wherever and whenever they are made.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

func main() {
	version := flag.String("version", "", "the version to release, such as v1.2.3")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := makeRelease(ctx, sidecar.Root(), *version, allPlatforms, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

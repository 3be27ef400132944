package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kwok-dra/kwok-dra/test/tools/release/chart"
	"github.com/kwok-dra/kwok-dra/test/tools/release/image"
	"github.com/kwok-dra/kwok-dra/test/tools/release/overlay"
)

// writeManifests writes install.yaml and the Helm chart, both out of the overlays. install.yaml says
// the digest of the image, and names it by the tag: the image is in no registry, and a node
// into which its archive was loaded finds it by no digest.
func (r *release) writeManifests(ctx context.Context) error {
	dir := filepath.Join(r.work, "checkout")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	checkout, err := overlay.Copy(ctx, r.Root, dir, "kwok", "kwok-general")
	if err != nil {
		return err
	}
	text, err := checkout.Manifest(r.Version)
	if err != nil {
		return err
	}
	text = append(fmt.Appendf(nil, "# Its image is %s@%s.\n", image.Name(r.Version), r.digest), text...)
	if err := os.WriteFile(r.distPath("install.yaml"), text, 0o644); err != nil {
		return err
	}
	return chart.Write(checkout, r.distPath(chart.File(r.Version)), r.Version, r.Date)
}

package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/kwok-dra/kwok-dra/test/tools/release/chart"
	"github.com/kwok-dra/kwok-dra/test/tools/release/overlay"
)

// manifests writes install.yaml and the Helm chart, both out of the overlays.
func (r *release) manifests(ctx context.Context) error {
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
	if err := os.WriteFile(r.path("install.yaml"), text, 0o644); err != nil {
		return err
	}
	return chart.Write(checkout, r.path(chart.File(r.Version)), r.Version, r.Date)
}

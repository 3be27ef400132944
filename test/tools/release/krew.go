package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

const (
	repository = "https://github.com/kwok-dra/kwok-dra"
	// krewFile is named as krew wants it: by what follows "kubectl " on the command line.
	krewFile = "dra.yaml"
)

// krewDescription has lines of 80 characters at most.
const krewDescription = `Shows which Pod has which device of dynamic resource allocation (DRA), in which
state the devices are, and why Pods wait for devices: which class, selector,
constraint, taint or node leaves none for them.

It reads ResourceSlices, ResourceClaims, DeviceClasses, Pods, Nodes and events of
any cluster with DRA, whatever its drivers, and writes nothing.
`

// writeKrewManifest writes the manifest with which krew installs the plugin of kubectl.
func (r *release) writeKrewManifest(context.Context) error {
	var platforms []map[string]any
	for _, platform := range r.platforms {
		archive := r.archiveName(plugin, platform)
		content, err := os.ReadFile(r.distPath(archive))
		if err != nil {
			return err
		}
		platforms = append(platforms, map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"os": platform.OS, "arch": platform.Architecture}},
			"uri":      repository + "/releases/download/" + r.Version + "/" + archive,
			"sha256":   fmt.Sprintf("%x", sha256.Sum256(content)),
			"bin":      fileOf(platform, plugin),
		})
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
		"kind":       "Plugin",
		"metadata":   map[string]any{"name": "dra"},
		"spec": map[string]any{
			"version":          r.Version,
			"homepage":         repository,
			"shortDescription": "Show which Pod has which device, and why Pods wait",
			"description":      krewDescription,
			"platforms":        platforms,
		},
	})
	if err != nil {
		return fmt.Errorf("encode %s: %w", krewFile, err)
	}
	return os.WriteFile(r.distPath(krewFile), text, 0o644)
}

// Package kustomize has the catalogue of profiles, and the DeviceClasses that
// they share.
package kustomize

import "embed"

// Profiles are the directories profiles and deviceclasses.
//
//go:embed profiles deviceclasses
var Profiles embed.FS

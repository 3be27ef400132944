// Package version has the version of the programs.
package version

import "runtime/debug"

// version is set by the linker for releases.
var version string

// Get returns the version, from the linker or from the module's build information.
func Get() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

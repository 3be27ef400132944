package version

import (
	"runtime"
	"runtime/debug"

	apiversion "k8s.io/apimachinery/pkg/version"
)

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

// Info is the version in the form in which Kubernetes' components tell theirs.
func Info() apiversion.Info {
	return apiversion.Info{GitVersion: Get(), GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH}
}

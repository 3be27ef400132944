package build

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/module"
)

// The environment variables that choose versions and the place of the cache.
const (
	KubernetesVersionEnv = "KUBERNETES_VERSION"
	KwokVersionEnv       = "KWOK_VERSION"
	CacheEnv             = "KWOK_DRA_CACHE"
	// ReleaseEnv chooses between the official release binaries and compiled programs:
	// 0 and false compile, any other value downloads or fails, and without a value
	// the programs are downloaded where that works, and compiled where not.
	ReleaseEnv = "RELEASE_BINARIES"
)

const (
	defaultKubernetes = "v1.36.3"
	defaultKwok       = "v0.8.0"
	// kwokctl is always this one: it alone is known to start every supported
	// Kubernetes with the flags that this module uses.
	kwokctlVersion = "v0.8.0"
	etcdVersion    = "v3.6.16"
)

// patches are the releases that a minor version alone stands for.
var patches = map[string]string{
	"v1.34": "v1.34.4",
	"v1.35": "v1.35.4",
	"v1.36": "v1.36.3",
	"v1.37": "v1.37.2",
}

var releaseVersion = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

// Versions names what to build.
type Versions struct {
	// Kubernetes and Kwok are releases such as v1.36.3 and v0.8.0. The "v" may be
	// left out, and so may the patch version of a known Kubernetes minor. Empty
	// means the environment variable, or the default when that is unset too.
	Kubernetes, Kwok string
}

// Pinned are the modules of the programs, in the versions that stand here.
func Pinned() []module.Version {
	pinned := []module.Version{etcdUnit().source, {Path: kwokModule, Version: kwokctlVersion}}
	for _, version := range patches {
		pinned = append(pinned, module.Version{Path: kubernetesModule, Version: version})
	}
	return pinned
}

// Resolve returns v with both versions spelled out in full.
func (v Versions) Resolve() (Versions, error) {
	kubernetes := withV(firstSet(v.Kubernetes, os.Getenv(KubernetesVersionEnv), defaultKubernetes))
	if patch, ok := patches[kubernetes]; ok {
		kubernetes = patch
	}
	if !releaseVersion.MatchString(kubernetes) || !strings.HasPrefix(kubernetes, "v1.") {
		return Versions{}, fmt.Errorf("resolve Kubernetes version %q: want a release such as 1.36.3, or one of the minors %s",
			kubernetes, strings.Join(supportedMinors(), ", "))
	}
	kwok := withV(firstSet(v.Kwok, os.Getenv(KwokVersionEnv), defaultKwok))
	if !releaseVersion.MatchString(kwok) {
		return Versions{}, fmt.Errorf("resolve kwok version %q: want a release such as 0.8.0", kwok)
	}
	return Versions{Kubernetes: kubernetes, Kwok: kwok}, nil
}

func supportedMinors() []string {
	var names []string
	for minor := range patches {
		names = append(names, strings.TrimPrefix(minor, "v"))
	}
	slices.Sort(names)
	return names
}

func firstSet(values ...string) string {
	for _, value := range values {
		if value != "" {
			return value
		}
	}
	return ""
}

func withV(version string) string {
	return "v" + strings.TrimPrefix(strings.TrimSpace(version), "v")
}

package build

import (
	"fmt"
	"path"
	"strings"

	"golang.org/x/mod/module"

	"github.com/kwok-dra/kwok-dra/test/cluster/release"
)

// unit is what one run of the compiler makes: the programs of one module, in
// one directory of the cache.
type unit struct {
	name     string
	source   module.Version
	parts    string // see scratchModule
	packages []string
	ldflags  []string
	// program is the name of the only program, where its package has another one.
	program string
	// checkout is the directory of the source, where no module of it is published.
	checkout string
	// others says that the program is none of a cluster.
	others bool
	// tests says that the program is the tests of the package, with these build tags.
	tests bool
	tags  string
	// patch is a file with changes to the source and its parts.
	patch string
	// stages are the files of the module that are kept beside the programs, as one.
	stages []string
	// cpu is how many seconds of a processor the build takes on a fast machine.
	cpu int
	// release are the programs as they are downloaded instead of built.
	release []release.File
	// compiled stands in for a release that cannot be downloaded. It is nil where
	// the user wants nothing else.
	compiled *unit
	// reason says why the programs are compiled, or downloaded.
	reason string
}

// compiledUnits are what the given versions consist of, the longest build first so
// that the end of the progress is near when the numbers say so.
func compiledUnits(v Versions) []unit {
	all := []unit{kubernetesUnit(v.Kubernetes), etcdUnit(), kwokUnit(kwokctlVersion)}
	if v.Kwok != kwokctlVersion {
		all = append(all, kwokUnit(v.Kwok))
	}
	return all
}

const (
	kubernetesPrefix = "kubernetes-"
	kubernetesModule = "k8s.io/kubernetes"
	kwokModule       = "sigs.k8s.io/kwok"
)

func kubernetesUnit(version string) unit {
	numbers := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	var ldflags []string
	// kubectl reads its version from client-go, everything else from component-base.
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		ldflags = append(ldflags,
			versionFlag(pkg, "gitVersion", version),
			versionFlag(pkg, "gitMajor", numbers[0]),
			versionFlag(pkg, "gitMinor", numbers[1]),
			versionFlag(pkg, "gitTreeState", "clean"),
			// A module does not know its commit; what stands there instead is a
			// placeholder that would show up in every user agent.
			versionFlag(pkg, "gitCommit", ""),
		)
	}
	return unit{
		name:   kubernetesPrefix + version,
		source: module.Version{Path: kubernetesModule, Version: version},
		parts:  stagingVersion(version),
		packages: []string{
			"k8s.io/kubernetes/cmd/kube-apiserver",
			"k8s.io/kubernetes/cmd/kube-controller-manager",
			"k8s.io/kubernetes/cmd/kube-scheduler",
			"k8s.io/kubernetes/cmd/kubectl",
		},
		ldflags: ldflags,
		cpu:     430,
	}
}

func etcdUnit() unit {
	const server = "go.etcd.io/etcd/server/v3"
	return unit{
		name:     "etcd-" + etcdVersion,
		source:   module.Version{Path: server, Version: etcdVersion},
		packages: []string{server},
		program:  "etcd",
		cpu:      60,
	}
}

func kwokUnit(version string) unit {
	u := unit{
		name:     "kwok-" + version,
		source:   module.Version{Path: kwokModule, Version: version},
		packages: []string{"sigs.k8s.io/kwok/cmd/kwok"},
		ldflags:  []string{versionFlag("sigs.k8s.io/kwok/pkg/consts", "Version", version)},
		cpu:      130,
	}
	if version == kwokctlVersion {
		u.packages = append(u.packages, "sigs.k8s.io/kwok/cmd/kwokctl")
		return u
	}
	// The Stages that kwokctl gives to its own kwok are not for older ones, so
	// these get what their own kwokctl would have given to them.
	for _, name := range []string{
		"node/fast/node-initialize",
		"node/heartbeat-with-lease/node-heartbeat-with-lease",
		"pod/fast/pod-ready",
		"pod/fast/pod-complete",
		"pod/fast/pod-delete",
	} {
		u.stages = append(u.stages, "kustomize/stage/"+name+".yaml")
	}
	return u
}

// stagesFile is where the stages of a unit are.
const stagesFile = "stages.yaml"

// outputFiles are what building u leaves behind.
func (u unit) outputFiles() []string {
	if u.stages != nil {
		return append(u.programNames(), stagesFile)
	}
	return u.programNames()
}

// goCommand is the go command that makes u.
func (u unit) goCommand() []string {
	if u.tests {
		// Vetting them, and all that they import, is for their authors, and takes long.
		return []string{"test", "-c", "-vet=off", "-tags", u.tags}
	}
	return []string{"build", "-v"}
}

// programNames are the names of the programs that building u leaves behind.
func (u unit) programNames() []string {
	if u.program != "" {
		return []string{u.program}
	}
	var names []string
	for _, pkg := range u.packages {
		names = append(names, path.Base(pkg))
	}
	return names
}

func (u unit) String() string {
	switch {
	case u.tests:
		return "tests of " + u.packages[0] + " " + u.source.Version
	case u.others:
		return u.packages[0] + " " + u.source.Version
	}
	return fmt.Sprintf("%s (%s)", u.moduleTitle(), strings.Join(u.programNames(), ", "))
}

// moduleTitle names the module and its version.
func (u unit) moduleTitle() string {
	return strings.Replace(strings.TrimSuffix(u.name, releaseSuffix), "-", " ", 1)
}

func versionFlag(pkg, name, value string) string {
	return fmt.Sprintf("-X %s.%s=%s", pkg, name, value)
}

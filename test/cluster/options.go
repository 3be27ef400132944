package cluster

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kwok-dra/kwok-dra/test/cluster/build"
)

// Options say what cluster to start. The zero value is a whole one with the
// default versions.
type Options struct {
	// Name is part of the context name in the kubeconfig and of paths.
	// Optional, default is a random one.
	Name string
	// KubernetesVersion and KwokVersion are as in build.Versions. Optional,
	// default are the environment variables KUBERNETES_VERSION and KWOK_VERSION.
	KubernetesVersion, KwokVersion string
	// Programs replace programs of the version, by component: {"kube-scheduler": PATH}.
	// Optional.
	Programs map[string]string
	// FeatureGates go to kube-apiserver, kube-controller-manager and
	// kube-scheduler. Optional.
	FeatureGates map[string]bool
	// RuntimeConfig switches APIs of kube-apiserver on or off, by keys such as
	// "resource.k8s.io/v1beta2" or "api/alpha". Optional.
	RuntimeConfig map[string]bool
	// Disable names components not to start: kube-controller-manager,
	// kube-scheduler, kwok-controller. Optional.
	Disable []string
	// ServerNames are names by which clients may reach the API server besides its
	// address, for its certificate. Optional.
	ServerNames []string
	// Config are files for kwokctl's --config: Stages, and its own configuration.
	// Stages given here replace all of kwok's default Stages. Optional.
	Config []string
	// EnableCRDs names the kinds that kwok reads from the cluster instead of from
	// files, for example "Stage". Optional.
	EnableCRDs []string
	// ContainerView has kubectl logs and kubectl exec show what kwok-dra writes into
	// the directory of Cluster.ContainerView. It needs kwok 0.8.
	ContainerView bool
	// Audit makes the API server log every finished request, see Cluster.AuditLog.
	Audit bool
	// ExtraArgs are flags by component: {"kube-scheduler": {"v=5"}}. They come
	// last, so they win. Optional.
	ExtraArgs map[string][]string
	// Output receives the progress. Optional, default is silence, except for the
	// first build of the programs, which takes minutes and tells os.Stderr.
	Output io.Writer
}

// The components that an Options.Disable, StopComponent and StartComponent may name.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kwok              = "kwok-controller"
)

var (
	simpleName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)
	errName    = errors.New("want at most 40 lower-case letters, digits and dashes")
)

// withDefaults returns o with defaults filled in, or what is wrong with it.
func (o Options) withDefaults() (Options, error) {
	versions, err := build.Versions{Kubernetes: o.KubernetesVersion, Kwok: o.KwokVersion}.Resolve()
	if err != nil {
		return o, err
	}
	o.KubernetesVersion, o.KwokVersion = versions.Kubernetes, versions.Kwok
	if o.Name == "" {
		o.Name = "t-" + strings.ToLower(rand.Text()[:6])
	}
	if !simpleName.MatchString(o.Name) {
		return o, fmt.Errorf("name cluster %q: %w", o.Name, errName)
	}
	for _, name := range o.Disable {
		if !slices.Contains([]string{ControllerManager, Scheduler, Kwok}, name) {
			return o, fmt.Errorf("disable component %q: want %s, %s or %s", name, ControllerManager, Scheduler, Kwok)
		}
	}
	o.Config = slices.Clone(o.Config)
	for i, file := range o.Config {
		if o.Config[i], err = filepath.Abs(file); err != nil {
			return o, fmt.Errorf("find configuration %s: %w", file, err)
		}
	}
	return o, nil
}

func (o Options) isDisabled(name string) bool { return slices.Contains(o.Disable, name) }

// formatSwitches writes a map of switches as the programs take it, in a fixed order.
func formatSwitches(m map[string]bool) string {
	var pairs []string
	for name, on := range m {
		pairs = append(pairs, name+"="+strconv.FormatBool(on))
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}

package cluster

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kwok-dra/kwok-dra/test/cluster/build"
)

const loopback = "127.0.0.1"

// kwokctlConfig is the part of kwokctl's configuration document that is used
// here. A document rather than flags: not everything has a flag, and the flag for
// extra arguments cannot take those of several components in any order.
type kwokctlConfig struct {
	APIVersion        string             `json:"apiVersion"`
	Kind              string             `json:"kind"`
	Options           kwokctlOptions     `json:"options"`
	Components        []component        `json:"components,omitempty"`
	ComponentsPatches []componentPatches `json:"componentsPatches"`
}

type kwokctlOptions struct {
	Runtime     string `json:"runtime"`
	BindAddress string `json:"bindAddress"`

	KubeVersion       string   `json:"kubeVersion"`
	KwokVersion       string   `json:"kwokVersion"`
	KubeAuthorization bool     `json:"kubeAuthorization"`
	KubeAdmission     bool     `json:"kubeAdmission"`
	KubeFeatureGates  string   `json:"kubeFeatureGates,omitempty"`
	KubeRuntimeConfig string   `json:"kubeRuntimeConfig,omitempty"`
	KubeAuditPolicy   string   `json:"kubeAuditPolicy,omitempty"`
	Disable           []string `json:"disable,omitempty"`
	EnableCRDs        []string `json:"enableCRDs,omitempty"`

	KubeApiserverCertSANs []string `json:"kubeApiserverCertSANs,omitempty"`

	EtcdBinary                  string `json:"etcdBinary"`
	KubeApiserverBinary         string `json:"kubeApiserverBinary"`
	KubeControllerManagerBinary string `json:"kubeControllerManagerBinary"`
	KubeSchedulerBinary         string `json:"kubeSchedulerBinary"`
	KubectlBinary               string `json:"kubectlBinary"`
	KwokControllerBinary        string `json:"kwokControllerBinary"`

	EtcdPort                  int `json:"etcdPort"`
	EtcdPeerPort              int `json:"etcdPeerPort"`
	KubeApiserverPort         int `json:"kubeApiserverPort"`
	KubeControllerManagerPort int `json:"kubeControllerManagerPort"`
	KubeSchedulerPort         int `json:"kubeSchedulerPort"`
	KwokControllerPort        int `json:"kwokControllerPort"`
}

type componentPatches struct {
	Name      string     `json:"name"`
	ExtraArgs []extraArg `json:"extraArgs,omitempty"`
	ExtraEnvs []env      `json:"extraEnvs,omitempty"`
}

type extraArg struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// auditPolicy logs what was asked for and by whom, once per request, and of what
// a kubelet or a DRA driver would write also the content.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: RequestResponse
  verbs: [create, update, patch, delete]
  resources:
  - group: ""
    resources: [pods/status]
  - group: resource.k8s.io
    resources: [resourceclaims/status]
- level: Metadata
`

// settings are what kwokctl is to know of a cluster.
type settings struct {
	folder
	options  Options
	programs *build.Programs
}

// writeConfiguration writes the configuration where kwokctl looks for it by default.
func (s settings) writeConfiguration(ports ports) error {
	config := kwokctlConfig{
		APIVersion:        "config.kwok.x-k8s.io/v1alpha1",
		Kind:              "KwokctlConfiguration",
		Options:           s.kwokctlOptions(ports),
		ComponentsPatches: argumentPatches(s.options.ExtraArgs),
	}
	if s.options.ContainerView {
		config.Options.EnableCRDs = append(slices.Clone(s.options.EnableCRDs), "Logs", "Exec")
		// kwok finds there what stands in for cat, env, ls and nvidia-smi.
		path := filepath.Join(s.ContainerView(), "bin") + string(os.PathListSeparator) + os.Getenv("PATH")
		config.ComponentsPatches = append(config.ComponentsPatches, componentPatches{Name: Kwok, ExtraEnvs: []env{{Name: "PATH", Value: path}}})
	}
	if s.programs.Stages != "" && !s.options.isDisabled(Kwok) {
		kwok, err := s.olderKwok(config.Options)
		if err != nil {
			return err
		}
		config.Options.Disable = append(slices.Clone(s.options.Disable), Kwok)
		config.Components = append(config.Components, kwok)
	}
	if s.options.Audit {
		config.Options.KubeAuditPolicy = s.pathOf("audit-policy.yaml")
		if err := os.WriteFile(config.Options.KubeAuditPolicy, []byte(auditPolicy), 0o600); err != nil {
			return fmt.Errorf("write audit policy: %w", err)
		}
	}
	document, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return fmt.Errorf("encode configuration of kwokctl: %w", err)
	}
	if err := os.WriteFile(s.pathOf("kwok.yaml"), document, 0o600); err != nil {
		return fmt.Errorf("write configuration of kwokctl: %w", err)
	}
	return nil
}

func (s settings) kwokctlOptions(ports ports) kwokctlOptions {
	o, p := s.options, s.programs
	return kwokctlOptions{
		Runtime:           "binary",
		BindAddress:       loopback,
		KubeVersion:       o.KubernetesVersion,
		KwokVersion:       o.KwokVersion,
		KubeAuthorization: true,
		KubeAdmission:     true,
		KubeFeatureGates:  formatSwitches(o.FeatureGates),
		KubeRuntimeConfig: formatSwitches(o.RuntimeConfig),
		Disable:           o.Disable,
		EnableCRDs:        o.EnableCRDs,

		KubeApiserverCertSANs: o.ServerNames,

		EtcdBinary:                  cmp.Or(o.Programs[Etcd], p.Path("etcd")),
		KubeApiserverBinary:         cmp.Or(o.Programs[APIServer], p.Path("kube-apiserver")),
		KubeControllerManagerBinary: cmp.Or(o.Programs[ControllerManager], p.Path("kube-controller-manager")),
		KubeSchedulerBinary:         cmp.Or(o.Programs[Scheduler], p.Path("kube-scheduler")),
		KubectlBinary:               p.Path("kubectl"),
		KwokControllerBinary:        p.Path("kwok"),

		EtcdPort:                  ports.first,
		EtcdPeerPort:              ports.first + 1,
		KubeApiserverPort:         ports.first + 2,
		KubeControllerManagerPort: ports.first + 3,
		KubeSchedulerPort:         ports.first + 4,
		KwokControllerPort:        ports.first + 5,
	}
}

// argumentPatches are our own extra arguments, and then those of the user.
func argumentPatches(extra map[string][]string) []componentPatches {
	args := map[string][]string{
		// Everything is thrown away, so nothing has to survive a power cut.
		Etcd: {"unsafe-no-fsync=true"},
		// The kubernetes Service cannot lead to a loopback address, and looking
		// for another one fails on a machine without a network.
		APIServer: {"advertise-address=" + loopback, "endpoint-reconciler-type=none"},
		// Alone in their cluster: after a restart they need not wait until the
		// lease of the ones before has run out.
		ControllerManager: {"leader-elect=false"},
		Scheduler:         {"leader-elect=false"},
	}
	for name, more := range extra {
		args[name] = append(args[name], more...)
	}
	var all []componentPatches
	for _, name := range slices.Sorted(maps.Keys(args)) {
		p := componentPatches{Name: name}
		for _, arg := range args[name] {
			key, value, ok := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
			if !ok {
				value = "true"
			}
			p.ExtraArgs = append(p.ExtraArgs, extraArg{Key: key, Value: value})
		}
		all = append(all, p)
	}
	return all
}

package install

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kwok-dra/kwok-dra/test/release/overlay"
	"github.com/kwok-dra/kwok-dra/test/sidecar"
)

// runningPod is a Pod on the host.
type runningPod struct {
	host       *host
	pod        *corev1.Pod
	containers []*process
}

// start starts the containers and returns when they pass their probes.
func (p *runningPod) start(ctx context.Context) error {
	kubeconfig, err := p.kubeconfig(ctx)
	if err != nil {
		return err
	}
	for i := range p.pod.Spec.Containers {
		container := &p.pod.Spec.Containers[i]
		running, err := p.startContainer(ctx, container, kubeconfig)
		if err != nil {
			return fmt.Errorf("start container %s: %w", container.Name, err)
		}
		p.host.mu.Lock()
		p.containers = append(p.containers, running)
		p.host.mu.Unlock()
	}
	for i, running := range p.containers {
		container := &p.pod.Spec.Containers[i]
		for _, probe := range []*corev1.Probe{container.StartupProbe, container.ReadinessProbe, container.LivenessProbe} {
			if err := running.passes(ctx, probe, container); err != nil {
				return fmt.Errorf("probe container %s: %w", container.Name, err)
			}
		}
	}
	return p.host.ready(ctx, p.pod)
}

func (p *runningPod) stop() {
	for _, container := range p.containers {
		container.stop()
	}
}

// startContainer runs a container's image with its arguments, environment and
// files. All that differs from what a kubelet would do is here, and is what a
// process forces that shares the machine with others:
//
//   - The API server is not found in a Pod's environment and under
//     /var/run/secrets, but in a kubeconfig, with the same token.
//   - It serves on a port of loopback that is free, in place of its own.
//   - Volumes are mounted below a directory, and arguments that name the place of
//     one name that.
func (p *runningPod) startContainer(ctx context.Context, container *corev1.Container, kubeconfig string) (*process, error) {
	program, err := p.program(container.Image)
	if err != nil {
		return nil, err
	}
	root := filepath.Join(p.host.dir, p.pod.Name, container.Name)
	environment := p.environment(container)
	arguments := expand(container.Args, environment)
	for _, mount := range container.VolumeMounts {
		place := filepath.Join(root, mount.MountPath)
		if err := p.mount(ctx, mount, place); err != nil {
			return nil, err
		}
		for i := range arguments {
			arguments[i] = strings.ReplaceAll(arguments[i], mount.MountPath, place)
		}
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	arguments = append(arguments, "--kubeconfig="+kubeconfig, "--server-address="+address)
	env := []string{"HOME=" + filepath.Join(root, "root")}
	for name, value := range environment {
		env = append(env, name+"="+value)
	}
	log := filepath.Join(p.host.cluster.Logs(), p.pod.Name+"-"+container.Name+".log")
	return startProcess(p.host.cluster, command{program: program, arguments: arguments, environment: env, log: log, name: container.Name, address: address, host: p.host.nameOf(p.pod)})
}

// program is what an image has for its entrypoint.
func (p *runningPod) program(image string) (string, error) {
	version := p.host.cluster.Versions().Kwok
	switch image {
	case "kwok-dra/kwok-dra:v0.2.0":
		return sidecar.Binary()
	case "registry.k8s.io/kwok/kwok:" + version:
		return p.host.cluster.Binary("kwok"), nil
	case "registry.k8s.io/kwok/kwok:v0.6.0":
		if version == overlay.KwokModule("v0.6.0") {
			return p.host.cluster.Binary("kwok"), nil
		}
	}
	return "", fmt.Errorf("there is no program for image %s", image)
}

// environment is that of a container, without what the image sets.
func (p *runningPod) environment(container *corev1.Container) map[string]string {
	values := map[string]string{}
	for _, variable := range container.Env {
		values[variable.Name] = variable.Value
		if from := variable.ValueFrom; from != nil && from.FieldRef != nil {
			values[variable.Name] = map[string]string{"status.podIP": loopback, "status.hostIP": loopback}[from.FieldRef.FieldPath]
		}
	}
	return values
}

var variable = regexp.MustCompile(`\$\((\w+)\)`)

// expand puts the values of variables into arguments, as kubelets do.
func expand(arguments []string, values map[string]string) []string {
	var expanded []string
	for _, argument := range arguments {
		expanded = append(expanded, variable.ReplaceAllStringFunc(argument, func(found string) string {
			value, known := values[variable.FindStringSubmatch(found)[1]]
			if !known {
				return found
			}
			return value
		}))
	}
	return expanded
}

// mount writes the files of a volume.
func (p *runningPod) mount(ctx context.Context, mount corev1.VolumeMount, place string) error {
	if strings.HasPrefix(mount.MountPath, "/var/run/secrets/kubernetes.io/") {
		return nil // in the kubeconfig
	}
	for _, volume := range p.pod.Spec.Volumes {
		if volume.Name != mount.Name {
			continue
		}
		if volume.ConfigMap == nil || mount.SubPath == "" {
			return fmt.Errorf("mount volume %s: want one file of a ConfigMap", volume.Name)
		}
		configMap, err := p.host.client.CoreV1().ConfigMaps(p.pod.Namespace).Get(ctx, volume.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("mount volume %s: %w", volume.Name, err)
		}
		if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
			return fmt.Errorf("mount volume %s: %w", volume.Name, err)
		}
		return os.WriteFile(place, []byte(configMap.Data[mount.SubPath]), 0o600)
	}
	return fmt.Errorf("mount volume %s: there is none", mount.Name)
}

// kubeconfig writes one with a token of the Pod's ServiceAccount.
func (p *runningPod) kubeconfig(ctx context.Context) (string, error) {
	token, err := p.host.client.CoreV1().ServiceAccounts(p.pod.Namespace).CreateToken(ctx, p.pod.Spec.ServiceAccountName, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: p.pod.Name, UID: p.pod.UID},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("request token of Pod %s: %w", p.pod.Name, err)
	}
	return writeKubeconfig(p.host.cluster.Kubeconfig(), filepath.Join(p.host.dir, p.pod.Name+".kubeconfig"), p.pod.Namespace, token.Status.Token)
}

// writeKubeconfig writes one for the same cluster as another, with a namespace and
// a token.
func writeKubeconfig(of, path, namespace, token string) (string, error) {
	administrator, err := clientcmd.BuildConfigFromFlags("", of)
	if err != nil {
		return "", fmt.Errorf("read kubeconfig: %w", err)
	}
	config := clientcmdapi.NewConfig()
	config.CurrentContext = "token"
	config.Contexts["token"] = &clientcmdapi.Context{Cluster: "cluster", AuthInfo: "token", Namespace: namespace}
	config.AuthInfos["token"] = &clientcmdapi.AuthInfo{Token: token}
	config.Clusters["cluster"] = &clientcmdapi.Cluster{
		Server:                   administrator.Host,
		CertificateAuthority:     administrator.CAFile,
		CertificateAuthorityData: administrator.CAData,
		InsecureSkipTLSVerify:    administrator.Insecure,
	}
	return path, clientcmd.WriteToFile(*config, path)
}

// freeAddress is a port on loopback that nobody listens on.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp4", loopback+":0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String(), nil
}

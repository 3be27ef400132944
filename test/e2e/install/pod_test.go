package install

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kwok-dra/kwok-dra/test/internal/admin"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
	"github.com/kwok-dra/kwok-dra/test/tools/release/overlay"
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
	if p.pod.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		return p.finish(ctx, kubeconfig)
	}
	for i, running := range p.containers {
		container := &p.pod.Spec.Containers[i]
		go p.host.expectRunning(ctx, running)
		for _, probe := range []*corev1.Probe{container.StartupProbe, container.ReadinessProbe, container.LivenessProbe} {
			if err := running.passes(ctx, probe, container); err != nil {
				return fmt.Errorf("probe container %s: %w", container.Name, err)
			}
		}
	}
	if err := p.renewStages(ctx); err != nil {
		return err
	}
	return p.host.ready(ctx, p.pod)
}

// renewStages has kwok read the Stages again, where the Pod is kwok's. kwok caches its first list of Stages
// by resource version and can do so before its informer has stored them all; it then plays too few Stages, or
// none, until a Stage changes (kwok v0.8.0, pkg/config/resources/cache.go).
func (p *runningPod) renewStages(ctx context.Context) error {
	isKwok := func(container corev1.Container) bool { return strings.Contains(container.Image, "/kwok/kwok:") }
	if !slices.ContainsFunc(p.pod.Spec.Containers, isKwok) {
		return nil
	}
	_, err := p.host.cluster.Kubectl(ctx, "annotate", "stages.kwok.x-k8s.io", "--all", "--overwrite", "read=again")
	return err
}

// finish waits for the container of a Job to succeed, and starts it again when it
// fails.
func (p *runningPod) finish(ctx context.Context, kubeconfig string) error {
	for {
		running := p.containers[0]
		select {
		case <-running.exited:
		case <-ctx.Done():
			return ctx.Err()
		}
		if running.running.ProcessState.Success() {
			return p.host.succeeded(ctx, p.pod)
		}
		select {
		case <-time.After(longestPause):
		case <-ctx.Done():
			return ctx.Err()
		}
		again, err := p.startContainer(ctx, &p.pod.Spec.Containers[0], kubeconfig)
		if err != nil {
			return fmt.Errorf("start container %s again: %w", p.pod.Spec.Containers[0].Name, err)
		}
		p.host.mu.Lock()
		p.containers[0] = again
		p.host.mu.Unlock()
	}
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
//   - It serves on a port of loopback that is free, in place of its own: kwok-dra on
//     one that it chooses and logs, kwok, which cannot, on one that was free before.
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
	arguments = append(arguments, "--kubeconfig="+kubeconfig)
	address := ""
	switch filepath.Base(program) {
	case "kubectl":
	case "kwok":
		if address, err = freeAddress(); err != nil {
			return nil, err
		}
		arguments = append(arguments, "--server-address="+address)
	default:
		arguments = append(arguments, "--server-address="+loopback+":0")
	}
	env := []string{"HOME=" + filepath.Join(root, "root")}
	for name, value := range environment {
		env = append(env, name+"="+value)
	}
	log := filepath.Join(p.host.cluster.Logs(), p.pod.Name+"-"+container.Name+".log")
	return startProcess(p.host.cluster, command{program: program, arguments: arguments, environment: env, log: log, name: container.Name, address: address, host: p.host.nameOf(p.pod)})
}

// ownVersion is that of kwok-dra's image in the kustomizations.
const ownVersion = "v0.2.0"

// program is what an image has for its entrypoint.
func (p *runningPod) program(image string) (string, error) {
	version := p.host.cluster.Versions().Kwok
	switch image {
	case "kwok-dra/kwok-dra:" + ownVersion:
		return sidecar.Binary()
	case "registry.k8s.io/kwok/kwok:" + version:
		return p.host.cluster.Binary("kwok"), nil
	case "registry.k8s.io/kwok/kwok:v0.6.0":
		if version == overlay.KwokModule("v0.6.0") {
			return p.host.cluster.Binary("kwok"), nil
		}
	}
	if strings.HasPrefix(image, "registry.k8s.io/kubectl:v") {
		return p.host.cluster.Binary("kubectl"), nil
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
		if volume.ConfigMap == nil {
			return fmt.Errorf("mount volume %s: want a ConfigMap", volume.Name)
		}
		configMap, err := p.configMap(ctx, volume.ConfigMap.Name)
		if err != nil {
			return fmt.Errorf("mount volume %s: %w", volume.Name, err)
		}
		return mountFiles(configMap.Data, mount.SubPath, place)
	}
	return fmt.Errorf("mount volume %s: there is none", mount.Name)
}

// configMap waits for a ConfigMap, as kubelets do.
func (p *runningPod) configMap(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		configMap, err := p.host.client.CoreV1().ConfigMaps(p.pod.Namespace).Get(ctx, name, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return configMap, err
		}
		select {
		case <-time.After(longestPause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// mountFiles writes one file, or all of them to a directory.
func mountFiles(files map[string]string, file, place string) error {
	if file != "" {
		files = map[string]string{filepath.Base(place): files[file]}
		place = filepath.Dir(place)
	}
	if err := os.MkdirAll(place, 0o755); err != nil {
		return fmt.Errorf("make directory of volume: %w", err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(place, name), []byte(content), 0o600); err != nil {
			return fmt.Errorf("write file of volume: %w", err)
		}
	}
	return nil
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
	administrator, err := admin.Config(of)
	if err != nil {
		return "", err
	}
	config := clientcmdapi.NewConfig()
	config.CurrentContext = "token"
	config.Contexts["token"] = &clientcmdapi.Context{Cluster: "cluster", AuthInfo: "token", Namespace: namespace}
	config.AuthInfos["token"] = &clientcmdapi.AuthInfo{Token: token}
	config.Clusters["cluster"] = &clientcmdapi.Cluster{
		Server:                   administrator.Host,
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

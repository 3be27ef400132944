package version

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/util/version"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

const (
	// timeout is how long the cluster may take to answer.
	timeout = 5 * time.Second
	// sidecarTimeout is how long sidecars may take.
	sidecarTimeout = 2 * time.Second
	// defaultPort is that of a container that names none.
	defaultPort = 10246
	// controllers selects the Pods of the kwok controller, and container is the name
	// of the sidecar in them.
	controllers = "app=kwok-controller"
	container   = v1alpha1.ManagedByValue
)

type command struct {
	streams cli.Streams
	reach   *cluster.Flags
	client  bool
	output  output.Flag
}

// New makes the command.
func New(streams cli.Streams, reach *cluster.Flags) *cobra.Command {
	c := &command{streams: streams, reach: reach}
	made := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of this command, of Kubernetes and of kwok-dra.",
		Long: `Print the versions of this command, of Kubernetes and of kwok-dra.

kwok-dra tells its version itself, at /version, which the API server asks for in the
Pods of the kwok controller. Where that fails, or you have no right to pods/proxy, it
is the tag of the image. It is unknown if kwok-dra runs as a program outside the
cluster: curl its --server-address, or run kwok-dra --version.
Without a kubeconfig, or where no cluster answers, only the version of this command is
printed. The exit code is 2 where no cluster answers.`,
		Example: `  # All versions
  kwok-dractl version

  # This command's only, without a cluster
  kwok-dractl version --client

  # For programs
  kwok-dractl version -o json`,
		Args: cli.NoArguments,
		RunE: func(made *cobra.Command, _ []string) error { return c.runVersion(made.Context()) },
	}
	made.Flags().BoolVar(&c.client, "client", false, "print the version of this command only")
	c.output.AddTo(made, output.Table, output.JSON, output.YAML)
	return made
}

// Versions are what the command prints.
type Versions struct {
	Client   string `json:"clientVersion"`
	Go       string `json:"goVersion"`
	Platform string `json:"platform"`
	// Kubernetes and Sidecars are left out without a cluster.
	Kubernetes string    `json:"kubernetesVersion,omitempty"`
	Sidecars   []Sidecar `json:"sidecars,omitempty"`
}

// Sidecar is one that runs in the cluster.
type Sidecar struct {
	Version string `json:"version"`
	// ByImage says that the version is the tag of the image, since the sidecar did not answer.
	ByImage   bool   `json:"byImage,omitempty"`
	Image     string `json:"image"`
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`

	port int32
}

func (c *command) runVersion(ctx context.Context) error {
	found := &Versions{Client: version.Get(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	var failure error
	ask := !c.client && c.reach.Configured()
	if ask {
		progress := c.streams.Progress("asking the cluster", 0)
		asking, cancel := context.WithTimeout(ctx, timeout)
		client, err := c.reach.Client()
		if err == nil {
			err = found.askCluster(asking, client)
		}
		failure = err
		cancel()
		progress.Done()
	}
	if c.output.Format != output.Table {
		if err := output.Value(c.streams.Out, c.output.Format, found); err != nil {
			return err
		}
		return failure
	}
	if err := c.printVersions(found, ask && failure == nil); err != nil {
		return err
	}
	return failure
}

func (v *Versions) askCluster(ctx context.Context, client kubernetes.Interface) error {
	server, err := client.Discovery().ServerVersionWithContext(ctx)
	if err != nil {
		return fmt.Errorf("no cluster answers, so only the version of this command is known: %w: see kubectl config view --minify, or give --client", err)
	}
	v.Kubernetes = server.GitVersion
	pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: controllers})
	if err != nil {
		return fmt.Errorf("list the Pods of the kwok controller: %w", err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		for j := range pod.Spec.Containers {
			of := &pod.Spec.Containers[j]
			if of.Name != container {
				continue
			}
			sidecar := Sidecar{Image: of.Image, Namespace: pod.Namespace, Pod: pod.Name, port: defaultPort}
			if i := slices.IndexFunc(of.Ports, func(p corev1.ContainerPort) bool { return p.Name == container }); i >= 0 {
				sidecar.port = of.Ports[i].ContainerPort
			}
			v.Sidecars = append(v.Sidecars, sidecar)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, sidecarTimeout)
	defer cancel()
	var asking sync.WaitGroup
	for i := range v.Sidecars {
		asking.Go(func() { v.Sidecars[i].askVersion(ctx, client) })
	}
	asking.Wait()
	return nil
}

// askVersion asks the sidecar for its version, over HTTPS if it does not serve HTTP.
func (s *Sidecar) askVersion(ctx context.Context, client kubernetes.Interface) {
	for _, scheme := range []string{"http", "https"} {
		var told apiversion.Info
		answer, err := client.CoreV1().Pods(s.Namespace).ProxyGet(scheme, s.Pod, strconv.Itoa(int(s.port)), "version", nil).DoRaw(ctx)
		if err == nil && json.Unmarshal(answer, &told) == nil && told.GitVersion != "" {
			s.Version = told.GitVersion
			return
		}
	}
	s.Version, s.ByImage = imageTag(s.Image), true
}

// imageTag is the tag of an image, or else its digest.
func imageTag(image string) string {
	name, digest, _ := strings.Cut(image, "@")
	last := name[strings.LastIndex(name, "/")+1:]
	if _, tag, tagged := strings.Cut(last, ":"); tagged {
		return tag
	}
	if digest != "" {
		return digest
	}
	return "latest"
}

func (c *command) printVersions(v *Versions, asked bool) error {
	lines := []string{"Client Version: " + v.Client, "Go Version: " + v.Go, "Platform: " + v.Platform}
	if asked {
		lines = append(lines, "Kubernetes Version: "+v.Kubernetes)
		if len(v.Sidecars) == 0 {
			lines = append(lines, "Sidecar Version: unknown: no Pod of the kwok controller has the container "+container+
				"; ask a program outside the cluster with kwok-dra --version")
		}
	} else if !c.client {
		lines = append(lines, "Kubernetes Version: unknown: no cluster answers")
	}
	for _, sidecar := range v.Sidecars {
		by := ""
		if sidecar.ByImage {
			by = "tag of the image, "
		}
		lines = append(lines, fmt.Sprintf("Sidecar Version: %s (%sPod %s/%s)", sidecar.Version, by, sidecar.Namespace, sidecar.Pod))
	}
	return output.Text(c.streams.Out, strings.Join(lines, "\n"))
}

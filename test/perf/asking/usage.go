package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/admin"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// pageSize is how many objects kubectl get asks for at a time.
const pageSize = 500

// usage is what a process has taken.
type usage struct {
	took, cpu time.Duration
	memory    int64
}

func (u usage) String() string {
	return fmt.Sprintf("%6.2f s | %6.2f s | %4d MiB", u.took.Seconds(), u.cpu.Seconds(), u.memory/sidecar.MiB)
}

// orFaster returns the faster one of two usages.
func (u usage) orFaster(other usage) usage {
	if u.took == 0 || other.took < u.took {
		return other
	}
	return u
}

// runner runs a process to its end.
type runner func(ctx context.Context, kubeconfig string) (usage, error)

// pluginName is the program that kubectl dra runs.
const pluginName = "kubectl-dra"

// buildPlugin builds the plugin, and returns its path.
func buildPlugin() (string, error) {
	path := filepath.Join(sidecar.Root(), "bin", "asking", pluginName)
	return path, sidecar.Build(sidecar.Root(), path, "./cmd/"+pluginName)
}

// listerOf makes a runner that lists resources, and does nothing with them.
func listerOf(resources []string) (runner, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	return newRunner(self, []string{"-list", strings.Join(resources, ",")}), nil
}

// exitNegative is the exit code of an answer that is no.
const exitNegative = 1

func newRunner(program string, arguments []string) runner {
	return func(ctx context.Context, kubeconfig string) (usage, error) {
		var said strings.Builder
		command := exec.CommandContext(ctx, program, arguments...)
		command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
		command.Stderr = &said
		start := time.Now()
		err := command.Run()
		took := time.Since(start)
		if exit, isExit := errors.AsType[*exec.ExitError](err); err != nil && (!isExit || exit.ExitCode() != exitNegative) {
			return usage{}, fmt.Errorf("run %s %s: %w\n%s", filepath.Base(program), strings.Join(arguments, " "), err, said.String())
		}
		memory, err := sidecar.PeakMemoryOf(command.ProcessState)
		return usage{took, command.ProcessState.UserTime() + command.ProcessState.SystemTime(), memory}, err
	}
}

// listedBy returns the resources that the plugin has listed since, by the audit log.
func listedBy(c *cluster.Cluster, since time.Time) ([]string, error) {
	events, err := c.Audited(func(e *cluster.AuditEvent) bool {
		return e.Verb == "list" && strings.HasPrefix(e.UserAgent, pluginName) && e.RequestReceivedTimestamp.After(since)
	})
	if err != nil {
		return nil, err
	}
	var resources []string
	for i := range events {
		if name := events[i].ObjectRef.Resource; listable[name] != nil && !slices.Contains(resources, name) {
			resources = append(resources, name)
		}
	}
	slices.Sort(resources)
	return resources, nil
}

// listable are the resources of which there are many.
var listable = map[string]func() (runtime.Object, string){
	"nodes":          func() (runtime.Object, string) { return &corev1.NodeList{}, "/api/v1" },
	"pods":           func() (runtime.Object, string) { return &corev1.PodList{}, "/api/v1" },
	"resourceslices": func() (runtime.Object, string) { return &resourcev1.ResourceSliceList{}, "/apis/resource.k8s.io/v1" },
	"resourceclaims": func() (runtime.Object, string) { return &resourcev1.ResourceClaimList{}, "/apis/resource.k8s.io/v1" },
}

// listAll lists resources in protobuf, page by page and one after the other, as kubectl get does.
func listAll(ctx context.Context, kubeconfig string, resources []string) error {
	config, err := admin.Config(kubeconfig)
	if err != nil {
		return err
	}
	config.ContentType = runtime.ContentTypeProtobuf
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.GroupVersion = &corev1.SchemeGroupVersion
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return err
	}
	for _, resource := range resources {
		pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, path := listable[resource]()
			err := client.Get().AbsPath(path, resource).VersionedParams(&options, scheme.ParameterCodec).Do(ctx).Into(list)
			return list, err
		})
		pages.PageSize = pageSize
		if _, _, err := pages.List(ctx, metav1.ListOptions{}); err != nil {
			return fmt.Errorf("list %s: %w", resource, err)
		}
	}
	return nil
}

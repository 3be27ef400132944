package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/module"

	"github.com/kwok-dra/kwok-dra/test/cluster/build"
	"github.com/kwok-dra/kwok-dra/test/cluster/gomod"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

var stateMetricsModule = module.Version{Path: "k8s.io/kube-state-metrics/v2", Version: "v2.20.0"}

// kubeStateMetrics runs as a process, and tells of the claims of fake Pods.
var kubeStateMetrics = suite{
	name:     "kube-state-metrics",
	title:    `[kube-state-metrics](#kube-state-metrics), stories of ours`,
	tests:    build.Tests{Module: stateMetricsModule},
	commands: []command{{module: stateMetricsModule}},
	install:  installStateMetrics,
	stories: []story{
		{name: "metrics tell which claim a Pod has", run: claimsInMetrics},
		{name: "metrics follow Pods that are replaced, and have other claims", run: newClaimsInMetrics},
	},
}

// claimMetric is the metric, and claimLabels are those of its labels that name what a Pod
// has.
const claimMetric = "kube_pod_resourceclaim_info"

var claimLabels = []string{"uid", "claim_name", "resourceclaim_name", "resourceclaim_template_name"}

func installStateMetrics(ctx context.Context, w *world) (*installation, error) {
	const name = "kube-state-metrics"
	source, err := gomod.Download(ctx, sidecar.Root(), stateMetricsModule.String())
	if err != nil {
		return nil, err
	}
	if _, err := w.Kubectl(ctx, "apply", "-k", filepath.Join(source.Dir, "examples", "standard")); err != nil {
		return nil, err
	}
	kubeconfig, err := sidecar.Kubeconfig(ctx, w.Cluster, "kube-system", name)
	if err != nil {
		return nil, err
	}
	err = w.AddComponent(name, w.programs[command{module: stateMetricsModule}], "--kubeconfig="+kubeconfig, "--resources=pods",
		"--host=127.0.0.1", "--port="+strconv.Itoa(w.SparePort()), "--telemetry-host=127.0.0.1", "--telemetry-port=0")
	return &installation{
		logs:    map[string]string{name + ".log": filepath.Join(w.Logs(), name+".log")},
		metrics: "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(w.SparePort())) + "/metrics",
	}, err
}

func claimsInMetrics(ctx context.Context, w *world) error {
	return w.perform(ctx, filepath.Join(manifests("kube-state-metrics"), "serving.yaml"), func() error {
		return w.compareMetrics(ctx)
	})
}

func newClaimsInMetrics(ctx context.Context, w *world) error {
	return w.perform(ctx, filepath.Join(manifests("kube-state-metrics"), "serving.yaml"), func() error {
		if err := w.compareMetrics(ctx); err != nil {
			return err
		}
		if _, err := w.Kubectl(ctx, "-n", storyNamespace, "rollout", "restart", "deployment/serving"); err != nil {
			return err
		}
		return w.compareMetrics(ctx)
	})
}

// compareMetrics returns when the Deployment has rolled out, and the metrics show of the
// claims what the API has.
func (w *world) compareMetrics(ctx context.Context) error {
	if _, err := w.Kubectl(ctx, "-n", storyNamespace, "rollout", "status", "--timeout=1m", "deployment/serving"); err != nil {
		return err
	}
	return until(ctx, seen, w.compareOnce)
}

func (w *world) compareOnce(ctx context.Context) error {
	pods, err := w.objects(ctx, "pods")
	if err != nil {
		return err
	}
	claims, err := w.objects(ctx, "resourceclaims")
	if err != nil {
		return err
	}
	// Two Pods have a GPU each, and share one.
	if err := prepared(claims, 3); err != nil {
		return err
	}
	want, err := wantedSeries(pods, claims)
	if err != nil {
		return err
	}
	got, err := w.scrape(ctx)
	if err != nil {
		return err
	}
	if !slices.Equal(want, got) {
		return fmt.Errorf("compare metric %s: the API has\n%s\nthe metric says\n%s", claimMetric, strings.Join(want, "\n"), strings.Join(got, "\n"))
	}
	return nil
}

func (w *world) scrape(ctx context.Context) ([]string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.installed.metrics, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	return claimSeries(string(body)), nil
}

var (
	seriesPattern = regexp.MustCompile(`(?m)^` + claimMetric + `\{(.*)\} 1$`)
	labelPattern  = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

// claimSeries are the series of the metric by the labels that count, sorted.
func claimSeries(metrics string) []string {
	var all []string
	for _, series := range seriesPattern.FindAllStringSubmatch(metrics, -1) {
		labels := map[string]string{}
		for _, label := range labelPattern.FindAllStringSubmatch(series[1], -1) {
			labels[label[1]] = label[2]
		}
		all = append(all, seriesOf(labels))
	}
	slices.Sort(all)
	return all
}

// wantedSeries are those that the metric should have, by the claims that are reserved for
// Pods and not by what the Pods say of them.
func wantedSeries(pods, claims []object) ([]string, error) {
	var all []string
	for _, pod := range pods {
		for _, entry := range pod.Spec.ResourceClaims {
			i := slices.IndexFunc(claims, func(claim object) bool {
				return claim.reservedFor(pod) && (claim.Metadata.Name == entry.ResourceClaimName || claim.Metadata.Annotations[podClaimAnnotation] == entry.Name)
			})
			if i < 0 {
				return nil, fmt.Errorf("look at Pod %s: no claim is reserved for its entry %s", pod.Metadata.Name, entry.Name)
			}
			all = append(all, seriesOf(map[string]string{
				"uid":                         pod.Metadata.UID,
				"claim_name":                  entry.Name,
				"resourceclaim_name":          claims[i].Metadata.Name,
				"resourceclaim_template_name": entry.ResourceClaimTemplateName,
			}))
		}
	}
	slices.Sort(all)
	return all, nil
}

func seriesOf(labels map[string]string) string {
	var all []string
	for _, name := range claimLabels {
		all = append(all, name+"="+labels[name])
	}
	return strings.Join(all, " ")
}

func (o object) reservedFor(pod object) bool {
	return slices.ContainsFunc(o.Status.ReservedFor, func(r struct{ UID string }) bool { return r.UID == pod.Metadata.UID })
}

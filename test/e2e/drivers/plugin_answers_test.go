package drivers

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// answersAsFake: kubectl dra says the same of a Pod with a device of the example's driver as of one with a device of the
// profile that plays this driver.
func (s *story) answersAsFake(pod string) {
	s.Helper()
	if s.node != "gpu" {
		return
	}
	fake := s.node + "-fake"
	template, err := os.ReadFile(filepath.Join(sidecar.Root(), "kustomize", "profiles", "gpu-example", "template.yaml"))
	require.NoError(s, err)
	s.Configure("gpu-example", string(template))
	node := harness.FakeNode(fake, fake)
	node.Labels[v1alpha1.ProfileLabel] = "gpu-example"
	_, err = s.Client.CoreV1().Nodes().Create(s.Context(), node, metav1.CreateOptions{})
	require.NoError(s, err)
	s.Namespace(fake, s.driver)
	s.CreatePod(fake, harness.NewPod(pod, fake, harness.FromTemplate))
	s.Running(fake, pod)
	for _, question := range [][]string{{"pods", pod}, {"claims"}, {"why", pod}} {
		require.Equal(s, s.answerTo(s.node, question...), s.answerTo(fake, question...), question)
	}
}

// asksWhy: the first line of kubectl dra why says what the kubelet's event says.
func (s *story) asksWhy(pod string) {
	s.Helper()
	_, cause, _ := strings.Cut(s.FailedPrepare(s.node, pod).Message, ": ")
	first, _, _ := strings.Cut(s.kubectlDRA("why", pod, "-n", s.node), "\n")
	require.Contains(s, first, cause)
}

// names are what differs between two Pods: their node and namespace, UUIDs, the generated part of a claim's name, and times.
var names = regexp.MustCompile(`(gpu-)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|gpu-[0-9]+|\bgpu(-fake)?\b(\.example)?|-[a-z0-9]{5}\b|[0-9-]+T[0-9:]+Z|\([0-9]+[a-z]+\)`)

// answerTo is what kubectl dra says, without names.
func (s *story) answerTo(namespace string, question ...string) string {
	s.Helper()
	return names.ReplaceAllString(s.kubectlDRA(append(question, "-n", namespace, "-o", "json")...), "NAME")
}

// kubectlDRA is the output of the plugin.
func (s *story) kubectlDRA(arguments ...string) string {
	s.Helper()
	programs, err := sidecar.Programs()
	require.NoError(s, err)
	command := exec.CommandContext(s.Context(), filepath.Join(programs, "kubectl-dra"), append(arguments, "--kubeconfig", s.Cluster.Kubeconfig())...)
	out, err := command.Output()
	require.NoError(s, err, arguments)
	return string(out)
}

package app

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/internal/util/version"
)

// parsed are the options of a command line.
func parsed(t *testing.T, line string) *Options {
	t.Helper()
	o := NewOptions()
	flags := o.Flags()
	flags.SetOutput(io.Discard)
	require.NoError(t, flags.Parse(strings.Fields(line)))
	return o
}

func TestOptions(t *testing.T) {
	t.Parallel()
	o := parsed(t, "--config a.yaml --config b,c.yaml --config-map kube-system/kwok-dra --kubeconfig k --kube-api-qps 100 --workers 3 "+
		"--server-address 127.0.0.1:1 --manage-nodes-with-label-selector a=b")
	require.NoError(t, o.Complete())
	require.Equal(t, []string{"a.yaml", "b,c.yaml"}, o.Config)
	require.Equal(t, &types.NamespacedName{Namespace: "kube-system", Name: "kwok-dra"}, o.configMap)
	require.Equal(t, "k", o.Kubeconfig)
	require.InDelta(t, 100, o.KubeAPIQPS, 0)
	require.Equal(t, 3, o.Workers)
	require.Equal(t, "127.0.0.1:1", o.ServerAddress)
	require.Equal(t, "labels a=b", o.Managed.String())
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	o := parsed(t, "--config a.yaml")
	require.NoError(t, o.Complete())
	require.Nil(t, o.configMap)
	require.Negative(t, o.KubeAPIQPS, "workers are the limit")
	require.Equal(t, 16, o.Workers)
	require.Equal(t, ":10246", o.ServerAddress)
	require.Equal(t, "annotations "+lifecycle.DefaultAnnotationSelector, o.Managed.String())
	require.False(t, o.Version)
}

// writeKubeconfig writes a kubeconfig of a cluster that does not answer.
func writeKubeconfig(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, []byte("current-context: c\ncontexts: [{name: c, context: {namespace: lab, cluster: c}}]\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"), 0o600))
	return file
}

// TestInstallation: what side by side is usual has other names, without a setting.
func TestInstallation(t *testing.T) {
	t.Parallel()
	kubeconfig := writeKubeconfig(t)
	for line, want := range map[string]string{
		"": "outside/lab/kwok-dra",
		"--manage-nodes-with-label-selector zone=z1":             "outside/lab/kwok-dra (labels zone=z1)",
		"--leader-elect-resource-namespace kube-system":          "outside/kube-system/kwok-dra",
		"--shard-mode leader --leader-elect-resource-name other": "outside/lab/other",
		"--installation lab --manage-all-nodes":                  "lab",
	} {
		o := parsed(t, "--enable-crds --kubeconfig "+kubeconfig+" "+line)
		require.NoError(t, o.Complete())
		found, err := o.RESTConfig()
		require.NoError(t, err)
		owner, err := newOwner(o, found)
		require.NoError(t, err)
		require.EqualValues(t, want, owner.Installation())
	}
}

func TestCompleteRefuses(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"":                                     "nothing to publish: give --config FILE, --config-map NAMESPACE/NAME or --enable-crds",
		"--config a.yaml --installation Lab/1": `parse --installation "Lab/1": must be lower case letters, digits, - and ., as the name of an object`,
		"--config-map kwok-dra":                `parse --config-map "kwok-dra": must be NAMESPACE/NAME`,
		"--config-map /kwok-dra":               "must be NAMESPACE/NAME",
		"--config-map kube-system/":            "must be NAMESPACE/NAME",
		"--config-map a/b/c":                   "must be NAMESPACE/NAME",
		"--config a --workers 0":               "parse --workers 0: must be at least 1",
		"--config a --workers -1":              "parse --workers -1: must be at least 1",
		"--config a --kube-api-qps 0":          "parse --kube-api-qps 0: ",
		"--config a --server-address 99":       `parse --server-address "99": must be HOST:PORT or :PORT, for example :10246`,
		"--config a --manage-all-nodes --manage-single-node n":                                                         "choose one of --manage-all-nodes",
		"--config a --manage-all-nodes --manage-nodes-with-label-selector a --manage-nodes-with-annotation-selector b": "choose one of --manage-all-nodes",
		"--config a --manage-nodes-with-label-selector a=b=c":                                                          "parse --manage-nodes-with-label-selector",
	} {
		require.ErrorContains(t, parsed(t, line).Complete(), want, line)
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"--nonsense", "--workers many", "--kube-api-qps x", "--config"} {
		flags := NewOptions().Flags()
		flags.SetOutput(io.Discard)
		require.Error(t, flags.Parse(strings.Fields(line)), line)
	}
	usages := NewOptions().Flags().FlagUsages()
	for _, flag := range []string{
		"--kubeconfig", "--config ", "--config-map", "--manage-all-nodes", "--manage-nodes-with-annotation-selector",
		"--manage-nodes-with-label-selector", "--manage-single-node", "--kube-api-qps", "--workers", "--server-address", "-v, --v", "--version",
	} {
		require.Contains(t, usages, flag)
	}
	var help strings.Builder
	flags := NewOptions().Flags()
	flags.SetOutput(&help)
	require.ErrorIs(t, flags.Parse([]string{"--help"}), pflag.ErrHelp)
	require.Contains(t, help.String(), "Usage:\n  kwok-dra (--config FILE | --config-map NAMESPACE/NAME | --enable-crds) [options]\n")
	require.NotContains(t, usages, "logtostderr", "of klog's flags only the verbosity")
	require.Contains(t, usages, "(default 16)")
}

func TestTune(t *testing.T) {
	t.Parallel()
	kubeconfig := writeKubeconfig(t)
	tuned := func(qps string) *rest.Config {
		found, err := parsed(t, "--kubeconfig "+kubeconfig+" "+qps).RESTConfig()
		require.NoError(t, err)
		return found
	}
	none := tuned("")
	require.Negative(t, none.QPS)
	require.Equal(t, "application/vnd.kubernetes.protobuf", none.ContentType)
	require.Equal(t, "kwok-dra/"+version.Get(), none.UserAgent)
	require.Equal(t, 100, tuned("--kube-api-qps 50").Burst)
	require.Equal(t, 1, tuned("--kube-api-qps 0.1").Burst, "a burst of 0 would let nothing through")
}

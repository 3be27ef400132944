package generate

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/internal/dractl/target"
)

// TestConfigMapKeepsKeys: the ConfigMap has the keys that are in the cluster; where
// these cannot be known, nothing is lost without a word.
func TestConfigMapKeepsKeys(t *testing.T) {
	t.Parallel()
	const template = "apiVersion: dra.kwok.x-k8s.io/v1alpha1\nkind: ResourcePoolTemplate\nmetadata: {name: mine}\nspec: {driver: d, devices: [{name: a}]}\n"
	for name, test := range map[string]struct {
		status       int
		body         any
		keys         []string
		told, failed string
	}{
		"keys":           {200, corev1.ConfigMap{Data: map[string]string{"mine.yaml": template}}, []string{"mine.yaml", "nvidia-t4.yaml"}, "", ""},
		"no key":         {200, corev1.ConfigMap{}, []string{"nvidia-t4.yaml"}, "", ""},
		"older version":  {200, corev1.ConfigMap{Data: map[string]string{"nvidia-t4.yaml": "# older"}}, []string{"nvidia-t4.yaml"}, "", ""},
		"no ConfigMap":   {404, map[string]any{"kind": "Status", "apiVersion": "v1", "reason": "NotFound", "code": 404}, []string{"nvidia-t4.yaml"}, "", ""},
		"forbidden":      {403, map[string]any{"kind": "Status", "apiVersion": "v1", "reason": "Forbidden", "code": 403}, nil, "", "whose other keys are to stay"},
		"binary":         {200, corev1.ConfigMap{BinaryData: map[string][]byte{"mine.yaml": []byte("\xfc")}}, nil, "", "has the keys mine.yaml under binaryData"},
		"another's name": {200, corev1.ConfigMap{Data: map[string]string{"a.yaml": "---\n" + string(mustRead(t, "nvidia-t4"))}}, nil, "", "metadata.name: also in ConfigMap kube-system/kwok-dra, key a.yaml"},
		"no cluster":     {0, nil, []string{"nvidia-t4.yaml"}, "apply it with --field-manager=kwok-dra-nvidia-t4, or kubectl may remove them", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/api/v1/namespaces/kube-system/configmaps/kwok-dra" {
					t.Errorf("unexpected request %s", r.URL)
				}
				encoded, _ := yaml.Marshal(test.body)
				encoded, _ = yaml.YAMLToJSON(encoded)
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(test.status)
				_, _ = w.Write(encoded)
			}))
			t.Cleanup(server.Close)
			if test.status == 0 {
				server.Close()
			}
			kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
			require.NoError(t, os.WriteFile(kubeconfig, []byte("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: '"+server.URL+"'}}]\n"+
				"contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u}]\ncurrent-context: c\n"), 0o600))
			var out, errOut bytes.Buffer
			command := New(cli.Streams{Out: &out, ErrOut: &errOut}, &cluster.Flags{Kubeconfig: kubeconfig})
			command.SetArgs([]string{"--profile", "nvidia-t4", "--config-map", "kube-system/kwok-dra"})
			command.SilenceErrors, command.SilenceUsage = true, true
			err := command.ExecuteContext(t.Context())
			if test.failed != "" {
				require.ErrorContains(t, err, test.failed)
				require.Empty(t, out.String())
				return
			}
			require.NoError(t, err)
			require.Contains(t, errOut.String(), test.told)
			documents := bytes.Split(out.Bytes(), []byte("---\n"))
			var configMap corev1.ConfigMap
			require.NoError(t, yaml.Unmarshal(documents[len(documents)-1], &configMap))
			var keys []string
			for key := range configMap.Data {
				keys = append(keys, key)
			}
			require.ElementsMatch(t, test.keys, keys)
			require.Contains(t, configMap.Data["nvidia-t4.yaml"], "name: nvidia-t4")
		})
	}
}

func mustRead(t *testing.T, profile string) []byte {
	t.Helper()
	read, err := target.Read(cli.Streams{}, []string{profile}, &target.Known{})
	require.NoError(t, err)
	return []byte(templatesOf(t, read))
}

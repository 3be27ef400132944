package install

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestUninstall installs, uses, installs again and takes away, after which nothing
// of kwok-dra is left in the cluster.
func TestUninstall(t *testing.T) {
	t.Parallel()
	u := follows(t, hostOptions())
	// The last that the controllers make by themselves.
	u.run("until kubectl -n default get serviceaccount/default configmap/kube-root-ca.crt; do sleep 1; done")
	before := u.everything()
	u.does("kwok 0.8")
	u.does("Devices")
	u.write(profile, "profile", "kustomization.yaml")
	u.run("kubectl apply -k profile")
	published, configured := u.slicesOf("a"), u.configMap()
	require.NotEmpty(t, configured)
	u.does("kwok 0.8") // as an upgrade does
	require.Equal(t, published, u.slicesOf("a"), "slices are as they were")
	require.Equal(t, configured, u.configMap(), "so is the user's configuration")
	u.run("kubectl delete -f kustomize/profiles/gpu-example/sample.yaml\nkubectl wait --for=delete pod --all --timeout=60s")
	u.requireNoEntries()
	u.does("Uninstall")
	u.run("kubectl delete deviceclasses --all\nkubectl delete node a") // the user's own
	until(t, patience, func() string {                                 // the garbage collector takes a while
		left := u.everything()
		for object := range before {
			delete(left, object)
		}
		for object := range left {
			if !strings.Contains(object, "kwok.x-k8s.io") || strings.Contains(object, "dra") { // kwok's definition is kwok's
				return object + " is left"
			}
		}
		return ""
	})
}

// profile is what users have who take a profile from the catalogue.
const profile = `
resources: [../kustomize/config]
components: [../kustomize/profiles/nvidia-t4]
`

func (u *user) configMap() map[string]string {
	u.T().Helper()
	configMap, err := u.client.CoreV1().ConfigMaps("kube-system").Get(u.T().Context(), "kwok-dra", metav1.GetOptions{})
	require.NoError(u.T(), err)
	return configMap.Data
}

// requireNoEntries wants no claim to tell of devices that it no longer has.
func (u *user) requireNoEntries() {
	u.T().Helper()
	claims, err := u.client.ResourceV1().ResourceClaims(metav1.NamespaceAll).List(u.T().Context(), metav1.ListOptions{})
	require.NoError(u.T(), err)
	for _, claim := range claims.Items {
		require.Empty(u.T(), claim.Status.Devices, claim.Name)
	}
}

// passing are resources of which the cluster itself makes objects all the time.
var passing = []string{"events", "leases", "endpoints", "endpointslices", "componentstatuses", "controllerrevisions", "flowschemas", "prioritylevelconfigurations"}

// everything lists all objects in the cluster that do not come and go by
// themselves.
func (u *user) everything() map[string]bool {
	u.T().Helper()
	var resources []string
	output, err := u.shell("kubectl api-resources --verbs=list -o name").Output()
	require.NoError(u.T(), err)
	for resource := range strings.FieldsSeq(string(output)) {
		name, _, _ := strings.Cut(resource, ".")
		if !slices.Contains(passing, name) {
			resources = append(resources, resource)
		}
	}
	output, err = u.shell("kubectl get --all-namespaces -o name " + strings.Join(resources, ",")).Output()
	require.NoError(u.T(), err)
	objects := map[string]bool{}
	for object := range strings.FieldsSeq(string(output)) {
		objects[object] = true
	}
	return objects
}

// secure is what users have who protect the metrics.
const secure = `
resources: [../kustomize/kwok]
components: [../kustomize/secure-serving]
`

// TestSecureServing has the metrics be read by who may, and probes by the kubelet.
func TestSecureServing(t *testing.T) {
	t.Parallel()
	u := follows(t, hostOptions())
	u.write(secure, "mine", "kustomization.yaml")
	u.does("kwok 0.8", "kustomize/kwok\n", "mine\n")
	u.run("kubectl create serviceaccount prometheus\nkubectl create serviceaccount nobody\n" +
		"kubectl create clusterrolebinding prometheus --clusterrole kwok-dra-metrics-reader --serviceaccount default:prometheus")
	for _, test := range []struct {
		path, user string
		want       int
	}{
		{"/readyz", "", 200},
		{"/metrics", "", 401},
		{"/metrics", "nobody", 403},
		{"/metrics", "prometheus", 200},
		{"/", "prometheus", 403},
	} {
		token := ""
		if test.user != "" {
			output, err := u.shell("kubectl create token " + test.user).Output()
			require.NoError(t, err)
			token = strings.TrimSpace(string(output))
		}
		status, err := u.container("kwok-dra").get(t.Context(), corev1.URISchemeHTTPS, test.path, token)
		require.NoError(t, err)
		require.Equal(t, test.want, status, "%s as %s", test.path, test.user)
	}
}

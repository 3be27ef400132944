package install

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestRelease installs, uses, installs again and uninstalls what a release has.
func TestRelease(t *testing.T) {
	t.Parallel()
	u := follows(t, hostOptions())
	before := u.fresh()
	manifest, err := u.Manifest(ownVersion)
	require.NoError(t, err)
	u.write(string(manifest), "install.yaml")
	u.does("install.yaml")
	u.does("Devices")
	u.requirePrepared(h100)
	u.write(profile, "profile", "kustomization.yaml")
	u.run("kubectl apply -k profile")
	published, configured := u.slicesOf(h100), u.configMap()
	require.NotEmpty(t, configured)
	u.does("install.yaml") // as an upgrade does
	require.Equal(t, published, u.slicesOf(h100), "slices are as they were")
	require.Equal(t, configured, u.configMap(), "so is the user's configuration")
	u.uninstalls(before, "-k kustomize/kwok", "-f install.yaml")
}

// fresh is all that there is in a cluster that is new.
func (u *user) fresh() map[string]bool {
	u.T().Helper()
	// The last that the controllers make by themselves.
	u.run("until kubectl -n default get serviceaccount/default configmap/kube-root-ca.crt; do sleep 1; done")
	all, err := u.everything()
	require.NoError(u.T(), err)
	return all
}

// uninstalls removes the workload of the guide, and kwok-dra, after which nothing
// of it is left in the cluster.
func (u *user) uninstalls(before map[string]bool, replaced ...string) {
	u.T().Helper()
	u.run("kubectl delete -f training.yaml\nkubectl wait --for=delete pod --all --timeout=5m")
	u.requireNoEntries()
	u.does("Uninstall", replaced...)
	u.run("kubectl delete deviceclasses --all\nkubectl delete nodes --selector type=kwok") // the user's own
	until(u.T(), patience, func() string {                                                 // the garbage collector takes a while
		left, err := u.everything()
		if err != nil {
			return err.Error() // a definition may go meanwhile
		}
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

// profile is what users have who take a profile from the catalogue, and have a ConfigMap of their own.
const profile = `
resources: [../kustomize/config]
components: [../kustomize/profiles/nvidia-t4]
configMapGenerator:
- {name: kwok-dra, namespace: kube-system, behavior: merge, literals: ["own.yaml=# nothing yet"]}
`

func (o objects) configMap() map[string]string {
	o.Helper()
	configMap, err := o.client.CoreV1().ConfigMaps("kube-system").Get(o.Context(), "kwok-dra", metav1.GetOptions{})
	require.NoError(o, err)
	return configMap.Data
}

// requireNoEntries waits until no claim tells of devices that it no longer has.
func (o objects) requireNoEntries() {
	o.Helper()
	until(o.T, patience, func() string {
		claims, err := o.client.ResourceV1().ResourceClaims(metav1.NamespaceAll).List(o.Context(), metav1.ListOptions{})
		require.NoError(o, err)
		for _, claim := range claims.Items {
			if len(claim.Status.Devices) > 0 {
				return fmt.Sprintf("claim %s has %d entries", claim.Name, len(claim.Status.Devices))
			}
		}
		return ""
	})
}

// passing are resources of which the cluster itself makes objects all the time.
var passing = []string{"events", "leases", "endpoints", "endpointslices", "componentstatuses", "controllerrevisions", "flowschemas", "prioritylevelconfigurations"}

// everything lists all objects in the cluster that do not come and go by
// themselves.
func (u *user) everything() (map[string]bool, error) {
	u.T().Helper()
	var resources []string
	output, err := u.shell("kubectl api-resources --verbs=list -o name").Output()
	if err != nil {
		return nil, err
	}
	for resource := range strings.FieldsSeq(string(output)) {
		name, _, _ := strings.Cut(resource, ".")
		if !slices.Contains(passing, name) {
			resources = append(resources, resource)
		}
	}
	output, err = u.shell("kubectl get --all-namespaces -o name " + strings.Join(resources, ",")).Output()
	if err != nil {
		return nil, err
	}
	objects := map[string]bool{}
	for object := range strings.FieldsSeq(string(output)) {
		objects[object] = true
	}
	return objects, nil
}

// TestConfigurations installs with several configurations, one after the other:
// without custom resources, and with metrics that are read by who may, and probes by
// the kubelet.
func TestConfigurations(t *testing.T) {
	t.Parallel()
	u := follows(t, hostOptions())
	u.defineStages("v0.8.0")
	u.does("Without custom resources")
	u.run("until kubectl get resourceslices --field-selector spec.nodeName=" + h100 + " -o name | grep .; do sleep 1; done")
	require.NotEmpty(t, u.configMap())
	u.does("Options")
	require.Contains(t, u.container("kwok-dra").running.Args, "-v=2")
	u.does("Secure serving", "monitoring:prometheus", "default:prometheus")
	u.run("kubectl create serviceaccount prometheus\nkubectl create serviceaccount nobody")
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

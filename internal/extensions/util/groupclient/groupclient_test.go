package groupclient

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// TestNewForConfig asks each group for a list of a resource.
func TestNewForConfig(t *testing.T) {
	t.Parallel()
	var paths []string
	server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		paths = append(paths, request.URL.Path)
		if agent := request.UserAgent(); agent != rest.DefaultKubernetesUserAgent() {
			t.Errorf("the user agent is %q", agent)
		}
		response.Header().Set("Content-Type", "application/json")
		_, _ = response.Write([]byte(`{"kind": "List", "apiVersion": "v1"}`))
	}))
	defer server.Close()
	client, err := NewForConfig(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	all := metav1.ListOptions{}
	_, err = client.AppsV1().Deployments("n").List(t.Context(), all)
	require.NoError(t, err)
	_, err = client.BatchV1().Jobs("n").List(t.Context(), all)
	require.NoError(t, err)
	_, err = client.CoreV1().Pods("").List(t.Context(), all)
	require.NoError(t, err)
	_, err = client.ResourceV1().ResourceSlices().List(t.Context(), all)
	require.NoError(t, err)
	_, err = client.ResourceV1alpha3().DeviceTaintRules().List(t.Context(), all)
	require.NoError(t, err)
	_, err = client.ResourceV1beta2().DeviceTaintRules().List(t.Context(), all)
	require.NoError(t, err)
	_, err = client.SchedulingV1().PriorityClasses().List(t.Context(), all)
	require.NoError(t, err)
	require.Equal(t, []string{
		"/apis/apps/v1/namespaces/n/deployments", "/apis/batch/v1/namespaces/n/jobs", "/api/v1/pods",
		"/apis/resource.k8s.io/v1/resourceslices", "/apis/resource.k8s.io/v1alpha3/devicetaintrules",
		"/apis/resource.k8s.io/v1beta2/devicetaintrules", "/apis/scheduling.k8s.io/v1/priorityclasses",
	}, paths)
	_, err = NewForConfig(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAFile: "/nowhere"}})
	require.ErrorContains(t, err, "make a client")
}

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClaimSeries(t *testing.T) {
	t.Parallel()
	const metrics = `# HELP kube_pod_resourceclaim_info Information
# TYPE kube_pod_resourceclaim_info gauge
kube_pod_info{namespace="default",pod="serving-0",uid="p0"} 1
kube_pod_resourceclaim_info{namespace="default",pod="serving-0",uid="p0",claim_name="own",resourceclaim_name="serving-0-own-x",resourceclaim_template_name="gpu"} 1
kube_pod_resourceclaim_info{namespace="default",pod="serving-0",uid="p0",claim_name="common",resourceclaim_name="shared",resourceclaim_template_name=""} 1
`
	pods := parseObjects(t, `
- metadata: {name: serving-0, uid: p0}
  spec:
    resourceClaims:
    - {name: own, resourceClaimTemplateName: gpu}
    - {name: common, resourceClaimName: shared}
`)
	want, err := wantedSeries(pods, parseObjects(t, claimsText))
	require.NoError(t, err)
	require.Equal(t, []string{
		"uid=p0 claim_name=common resourceclaim_name=shared resourceclaim_template_name=",
		"uid=p0 claim_name=own resourceclaim_name=serving-0-own-x resourceclaim_template_name=gpu",
	}, want)
	require.Equal(t, want, claimSeries(metrics))

	// What a Pod says of itself does not count: no claim is reserved for this one.
	pods[0].Metadata.UID = "other"
	_, err = wantedSeries(pods, parseObjects(t, claimsText))
	require.EqualError(t, err, "look at Pod serving-0: no claim is reserved for its entry own")
}

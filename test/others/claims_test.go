package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

func parseObjects(t *testing.T, text string) []object {
	t.Helper()
	document, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	var all []object
	require.NoError(t, json.Unmarshal(document, &all))
	return all
}

const claimsText = `
- metadata: {name: serving-0-own-x, uid: c0, annotations: {resource.kubernetes.io/pod-claim-name: own}}
  status:
    allocation: {devices: {results: [{driver: gpu.example.com, pool: node-0, device: gpu-0}]}}
    reservedFor: [{resource: pods, name: serving-0, uid: p0}]
    devices:
    - {driver: gpu.example.com, pool: node-0, device: gpu-0, conditions: [{type: Ready, status: "True", reason: Prepared}]}
- metadata: {name: shared, uid: c1}
  status:
    allocation: {devices: {results: [{driver: gpu.example.com, pool: node-0, device: gpu-1}]}}
    reservedFor: [{resource: pods, name: serving-0, uid: p0}, {resource: pods, name: serving-1, uid: p1}]
    devices:
    - {driver: gpu.example.com, pool: node-0, device: gpu-1, conditions: [{type: Ready, status: "True", reason: Prepared}]}
`

func TestPrepared(t *testing.T) {
	t.Parallel()
	require.NoError(t, prepared(parseObjects(t, claimsText), 2))
	require.EqualError(t, prepared(parseObjects(t, claimsText), 3), "count the devices of 2 claims: want 3, got 2")

	claims := parseObjects(t, claimsText)
	claims[1].Status.Devices[0].Conditions[0].Status = "False"
	require.EqualError(t, prepared(claims, 2), "look at claim shared: device gpu-1 of pool node-0 is not prepared")
	claims[1].Status.Devices = nil
	require.EqualError(t, prepared(claims, 2), "look at claim shared: device gpu-1 of pool node-0 is not prepared")
	claims[1].Status.Allocation = claims[0].Status.Allocation
	require.EqualError(t, prepared(claims, 2), "look at claim shared: another claim has device gpu-0 of pool node-0 too")
	claims[1].Status.Allocation = nil
	require.EqualError(t, prepared(claims, 2), "look at claim shared: it is not allocated")
}

func TestEnded(t *testing.T) {
	t.Parallel()
	const text = `
- metadata: {name: training-0}
  spec: {resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]}
  status:
    phase: Succeeded
    conditions: [{type: PodReadyToStartContainers, status: "True"}]
    resourceClaimStatuses: [{name: gpu, resourceClaimName: training-0-gpu-x}]
`
	require.NoError(t, ended(parseObjects(t, text), 1))
	require.EqualError(t, ended(parseObjects(t, text), 2), "count Pods: want 2, got 1")

	pods := parseObjects(t, text)
	pods[0].Status.Conditions[0].Status = "False"
	require.EqualError(t, ended(pods, 1), "look at Pod training-0: its claims were not prepared")
	pods[0].Status.ResourceClaimStatuses = nil
	require.EqualError(t, ended(pods, 1), "look at Pod training-0: it had 0 claims of the 1 in its spec, want all and at least one")
	pods[0].Spec.ResourceClaims = nil
	require.EqualError(t, ended(pods, 1), "look at Pod training-0: it had 0 claims of the 0 in its spec, want all and at least one")
	pods[0].Status.Phase = "Pending"
	require.EqualError(t, ended(pods, 1), "look at Pod training-0: it is Pending")
}

package e2e

import (
	"fmt"
	"strings"
)

// nodeClass is that of all NodePools.
const nodeClass = `
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
`

// nodePool is a NodePool for the Pods of one test.
type nodePool struct {
	name string
	// types are its instance types.
	types string
	// labels are more labels of its nodes, as in YAML.
	labels string
	// annotations are those of its nodes, as in YAML.
	annotations string
	// consolidates has it give up nodes that are not needed.
	consolidates bool
}

func (p nodePool) manifest(scene string) string {
	after := "Never"
	if p.consolidates {
		after = "0s"
	}
	return fmt.Sprintf(`
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %s}
spec:
  template:
    metadata:
      labels: {scene: %s%s}
      annotations: {%s}
    spec:
      requirements:
      - {key: node.kubernetes.io/instance-type, operator: In, values: [%s]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      expireAfter: Never
  disruption:
    consolidationPolicy: WhenEmptyOrUnderutilized
    consolidateAfter: %s
    budgets: [{nodes: "100%%"}]
`, p.name, scene, prefixed(p.labels), p.annotations, p.types, after)
}

func prefixed(more string) string {
	if more == "" {
		return ""
	}
	return ", " + more
}

// request is an entry of a claim's requests, as in YAML.
func request(name, class string, count int, selectors ...string) string {
	var cel []string
	for _, selector := range selectors {
		cel = append(cel, fmt.Sprintf(`{cel: {expression: "%s"}}`, selector))
	}
	return fmt.Sprintf(`{name: %s, exactly: {deviceClassName: %s, count: %d, selectors: [%s]}}`, name, class, count, strings.Join(cel, ", "))
}

// claimTemplate is a ResourceClaimTemplate.
func claimTemplate(name, constraint string, requests ...string) string {
	constraints := ""
	if constraint != "" {
		constraints = "{matchAttribute: " + constraint + "}"
	}
	return fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: %s}
spec: {spec: {devices: {requests: [%s], constraints: [%s]}}}
---
`, name, strings.Join(requests, ", "), constraints)
}

// podSpec is the spec of a Pod with a claim, for the nodes of a test.
func podSpec(scene, claim string) string {
	return fmt.Sprintf(`{nodeSelector: {scene: %s}, terminationGracePeriodSeconds: 1, resourceClaims: [{name: devices, resourceClaimTemplateName: %s}],
    containers: [{name: main, image: main, resources: {claims: [{name: devices}]}}]}`, scene, claim)
}

func podManifest(name, scene, claim string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec: %s
---
`, name, podSpec(scene, claim))
}

func deployment(name string, replicas int, scene, claim string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: %[3]s
---
`, name, replicas, podSpec(scene, claim))
}

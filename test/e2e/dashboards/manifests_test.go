package dashboards

// policy refuses slices with a device of the name refused.
const policy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: refuse}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [resource.k8s.io], apiVersions: [v1], operations: [CREATE], resources: [resourceslices]}
  validations:
  - {expression: '!has(object.spec.devices) || object.spec.devices.all(device, device.name != "refused")'}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: refuse}
spec: {policyName: refuse, validationActions: [Deny]}
`

const refusedSlice = `
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: probe}
spec: {driver: probe.example.com, allNodes: true, pool: {name: probe, generation: 1, resourceSliceCount: 1}, devices: [{name: refused}]}
`

// classes have Pods claim devices.
const classes = `
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: device.driver == %q}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu, namespace: default}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}}
`

const configuration = `
apiVersion: v1
kind: ConfigMap
metadata: {name: kwok-dra, namespace: default}
data:
  all: |
    apiVersion: dra.kwok.x-k8s.io/v1alpha1
    kind: KwokDRAConfiguration
    metadata: {name: failures}
    spec: {failWhen: {matchLabels: {fail: "true"}}, retryInterval: 1s}
    ---
    apiVersion: dra.kwok.x-k8s.io/v1alpha1
    kind: ResourcePoolTemplate
    metadata: {name: whole}
    spec: {driver: %s, devices: [{name: gpu, count: 8}]}
    ---
    apiVersion: dra.kwok.x-k8s.io/v1alpha1
    kind: ResourcePoolTemplate
    metadata: {name: torn}
    spec:
      nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: node, operator: In, values: [torn]}]}]}
      driver: %s
      devices: [{name: taken}, {name: refused}]
      slices: [{devices: [taken]}, {devices: [refused]}]
    ---
    apiVersion: dra.kwok.x-k8s.io/v1alpha1
    kind: ResourcePoolTemplate
    metadata: {name: poorer}
    spec: {driver: %s, devices: [{name: port, bindingConditions: [example.com/attached], bindingFailureConditions: [example.com/lost]}]}
`

// events are what happens in a round of that number.
const events = `
apiVersion: v1
kind: Node
metadata:
  name: good-%[1]d
  labels: {node: good}
  annotations: {kwok.x-k8s.io/node: fake, dra.kwok.x-k8s.io/device-taints: "gpu-7:example.com/broken:NoSchedule"}
---
apiVersion: v1
kind: Node
metadata:
  name: torn-%[1]d
  labels: {node: torn}
  annotations: {kwok.x-k8s.io/node: fake}
---
apiVersion: v1
kind: Node
metadata:
  name: mistaken-%[1]d
  annotations: {kwok.x-k8s.io/node: fake, dra.kwok.x-k8s.io/device-taints: gpu-7}
---
apiVersion: v1
kind: Pod
metadata: {name: works-%[1]d, namespace: default}
spec:
  nodeSelector: {node: good}
  containers: [{name: c, image: busybox, resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
---
apiVersion: v1
kind: Pod
metadata: {name: fails-%[1]d, namespace: default, labels: {fail: "true"}}
spec:
  nodeSelector: {node: good}
  containers: [{name: c, image: busybox, resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
---
apiVersion: v1
kind: Pod
metadata: {name: unseen-%[1]d, namespace: default}
spec:
  nodeName: good-%[1]d
  containers: [{name: c, image: busybox, resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
`

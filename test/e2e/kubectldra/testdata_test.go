package kubectldra

// nodes are two nodes that no kwok plays.
const nodes = `
apiVersion: v1
kind: Node
metadata: {name: gpu-1, labels: {cloud.google.com/gke-nodepool: a3, name: gpu-1}}
status: {allocatable: {cpu: "8", memory: 8Gi, pods: "110"}, capacity: {cpu: "8", memory: 8Gi, pods: "110"}, conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Node
metadata: {name: gpu-2, labels: {cloud.google.com/gke-nodepool: a3, name: gpu-2}}
status: {allocatable: {cpu: "8", memory: 8Gi, pods: "110"}, capacity: {cpu: "8", memory: 8Gi, pods: "110"}, conditions: [{type: Ready, status: "True"}]}
`

// published is what two drivers of which nobody has heard have published: GPUs, of which one can be had in halves,
// and a network that all nodes share and claims can share.
const published = `
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: gpu-1-acme}
spec:
  driver: gpu.acme.test
  nodeName: gpu-1
  pool: {name: gpu-1, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: gpu-0, attributes: {model: {string: Acme Rocket}, uuid: {string: ACME-1-0}}, capacity: {memory: {value: 80Gi}}}
  - {name: gpu-1, attributes: {model: {string: Acme Rocket}, uuid: {string: ACME-1-1}}, capacity: {memory: {value: 80Gi}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: gpu-2-acme-counters}
spec:
  driver: gpu.acme.test
  nodeName: gpu-2
  pool: {name: gpu-2, generation: 1, resourceSliceCount: 2}
  sharedCounters: [{name: gpu-0, counters: {memory: {value: 80Gi}}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: gpu-2-acme}
spec:
  driver: gpu.acme.test
  nodeName: gpu-2
  pool: {name: gpu-2, generation: 1, resourceSliceCount: 2}
  devices:
  - {name: gpu-0, attributes: {model: {string: Acme Rocket}}, consumesCounters: [{counterSet: gpu-0, counters: {memory: {value: 80Gi}}}]}
  - {name: gpu-0-half-0, attributes: {profile: {string: half}}, consumesCounters: [{counterSet: gpu-0, counters: {memory: {value: 40Gi}}}]}
  - {name: gpu-0-half-1, attributes: {profile: {string: half}}, consumesCounters: [{counterSet: gpu-0, counters: {memory: {value: 40Gi}}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: fabric}
spec:
  driver: fabric.acme.test
  allNodes: true
  pool: {name: rail-1, generation: 1, resourceSliceCount: 1}
  devices: [{name: port, allowMultipleAllocations: true, capacity: {bandwidth: {value: 400G}}}]
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: rocket}
spec: {selectors: [{cel: {expression: "device.driver == 'gpu.acme.test' && 'model' in device.attributes['gpu.acme.test']"}}]}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: half}
spec: {selectors: [{cel: {expression: "device.driver == 'gpu.acme.test' && 'profile' in device.attributes['gpu.acme.test']"}}]}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: rail}
spec: {selectors: [{cel: {expression: "device.driver == 'fabric.acme.test'"}}]}
`

// workload is a Pod with a GPU and a share of the network, one with half a GPU, and one for which nothing is left.
const workload = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: train, namespace: team}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: rocket}}, {name: rail, exactly: {deviceClassName: rail, capacity: {requests: {bandwidth: 100G}}}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: train, namespace: team}
spec: {nodeSelector: {name: gpu-1}, resourceClaims: [{name: c, resourceClaimName: train}], containers: [{name: c, image: none, resources: {claims: [{name: c}]}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: infer, namespace: team}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: half}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: infer, namespace: team}
spec: {resourceClaims: [{name: c, resourceClaimName: infer}], containers: [{name: c, image: none, resources: {claims: [{name: c}]}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: greedy, namespace: other}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: rocket, count: 5}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: greedy, namespace: other}
spec: {resourceClaims: [{name: c, resourceClaimName: greedy}], containers: [{name: c, image: none, resources: {claims: [{name: c}]}}]}
`

// namespaceUser is somebody with the rights of a namespace.
const namespaceUser = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: viewer, namespace: team}
rules: [{apiGroups: ["", resource.k8s.io], resources: [pods, events, resourceclaims], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: viewer, namespace: team}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: viewer}
subjects: [{kind: User, name: tina, apiGroup: rbac.authorization.k8s.io}]
`

const viewerBinding = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: vera}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: dra-viewer}
subjects: [{kind: User, name: vera, apiGroup: rbac.authorization.k8s.io}]
`

#!/bin/sh
# Story story, drawn from seed 78. It needs kubectl alone, and a cluster with a scheduler and
# kube-controller-manager. It leaves its objects behind; to delete them: sh FILE clean
set -eu
rest() { sleep "${REST:-8}"; }
answer() {
  sleep 2
  kubectl -n story get resourceclaims -o go-template='{{range .items}}{{if and .status.allocation (not .status.devices)}}{{.metadata.name}} {"status":{"devices":[{{$comma := ""}}{{range .status.allocation.devices.results}}{{if .bindingConditions}}{{$comma}}{"driver":"{{.driver}}","pool":"{{.pool}}","device":"{{.device}}"{{with .shareID}},"shareID":"{{.}}"{{end}},"conditions":[{{$and := ""}}{{range .'"$1"'}}{{$and}}{"type":"{{.}}","status":"True","reason":"Answered","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}{{$and = ","}}{{end}}]}{{$comma = ","}}{{end}}{{end}}]}}
{{end}}{{end}}' | while read -r claim patch; do
    if [ "$patch" != '{"status":{"devices":[]}}' ]; then
      kubectl -n story patch resourceclaim "$claim" --subresource=status --type=merge -p "$patch"
    fi
  done
}
if [ "${1:-}" = clean ]; then
  kubectl delete pods,resourceclaims,resourceclaimtemplates -n story --all --grace-period=0 --force
  kubectl delete resourceslices,deviceclasses,nodes,priorityclasses,namespaces -l dra.kwok.x-k8s.io/story=story
  exit
fi

# 1. The nodes come up, and their devices are published.
kubectl create -f - <<'EOF'
apiVersion: v1
kind: Namespace
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
    resource.kubernetes.io/admin-access: "true"
  name: story
---
apiVersion: v1
kind: ServiceAccount
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: pods
  namespace: story
---
apiVersion: v1
kind: Node
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
    kubernetes.io/hostname: story-node-0
    topology.kubernetes.io/zone: b
  name: story-node-0
status:
  allocatable:
    cpu: "4"
    memory: 32Gi
    pods: "110"
  capacity:
    cpu: "4"
    memory: 32Gi
    pods: "110"
  conditions:
  - reason: NodeOfStory
    status: "True"
    type: Ready
---
apiVersion: v1
kind: Node
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
    kubernetes.io/hostname: story-node-1
    topology.kubernetes.io/zone: b
  name: story-node-1
status:
  allocatable:
    cpu: "4"
    memory: 32Gi
    pods: "110"
  capacity:
    cpu: "4"
    memory: 32Gi
    pods: "110"
  conditions:
  - reason: NodeOfStory
    status: "True"
    type: Ready
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: story-gpu
spec:
  config:
  - opaque:
      driver: gpu.story.example.com
      parameters:
        of: class
  extendedResourceName: story.example.com/gpu
  selectors:
  - cel:
      expression: device.driver == "gpu.story.example.com"
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: story-nic
spec:
  config:
  - opaque:
      driver: nic.story.example.com
      parameters:
        of: class
  extendedResourceName: story.example.com/nic
  selectors:
  - cel:
      expression: device.driver == "nic.story.example.com"
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: story-fpga
spec:
  extendedResourceName: story.example.com/fpga
  selectors:
  - cel:
      expression: device.driver == "fpga.story.example.com"
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: story-net-0-gpu-0
spec:
  allNodes: true
  devices:
  - attributes:
      example.com/numa:
        int: 0
      example.com/root:
        string: r0
      fast:
        bool: false
      firmware:
        version: 1.0.0
      index:
        int: 0
      model:
        string: b
    capacity:
      memory:
        value: 10Gi
    name: dev-0
  driver: gpu.story.example.com
  pool:
    generation: 1
    name: story-net-0
    resourceSliceCount: 1
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: story-net-1-gpu-0
spec:
  devices:
  - attributes:
      example.com/numa:
        int: 1
      example.com/root:
        string: r0
      fast:
        bool: false
      firmware:
        version: 1.2.0
      index:
        int: 0
      model:
        string: a
    capacity:
      memory:
        value: 20Gi
    name: dev-0
    nodeName: story-node-0
  - attributes:
      example.com/numa:
        int: 0
      example.com/root:
        string: r1
      fast:
        bool: false
      firmware:
        version: 1.0.0
      index:
        int: 1
      model:
        string: a
    capacity:
      memory:
        value: 20Gi
    name: dev-1
    nodeSelector:
      nodeSelectorTerms:
      - matchExpressions:
        - key: topology.kubernetes.io/zone
          operator: In
          values:
          - b
  driver: gpu.story.example.com
  perDeviceNodeSelection: true
  pool:
    generation: 1
    name: story-net-1
    resourceSliceCount: 1
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: story-node-0-nic-0
spec:
  devices:
  - attributes:
      example.com/numa:
        int: 0
      example.com/root:
        string: r0
      fast:
        bool: false
      firmware:
        version: 1.2.0
      index:
        int: 0
      model:
        string: a
    capacity:
      memory:
        value: 40Gi
    consumesCounters:
    - counterSet: card-0
      counters:
        engines:
          value: "4"
        memory:
          value: 40Gi
    name: card-0-whole
  - attributes:
      example.com/numa:
        int: 1
      fast:
        bool: false
      firmware:
        version: 1.2.0
      index:
        int: 1
      model:
        string: a
    capacity:
      memory:
        value: 20Gi
    consumesCounters:
    - counterSet: card-0
      counters:
        engines:
          value: "2"
        memory:
          value: 20Gi
    name: card-0-half-0
  driver: nic.story.example.com
  nodeName: story-node-0
  pool:
    generation: 1
    name: story-node-0
    resourceSliceCount: 3
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: story-node-0-nic-1
spec:
  devices:
  - attributes:
      example.com/numa:
        int: 0
      example.com/root:
        string: r1
      fast:
        bool: true
      firmware:
        version: 2.0.0
      index:
        int: 2
      model:
        string: a
    capacity:
      memory:
        value: 20Gi
    consumesCounters:
    - counterSet: card-0
      counters:
        engines:
          value: "2"
        memory:
          value: 20Gi
    name: card-0-half-1
  - attributes:
      example.com/numa:
        int: 0
      example.com/root:
        string: r0
      fast:
        bool: false
      firmware:
        version: 1.0.0
      index:
        int: 3
      model:
        string: b
    capacity:
      memory:
        value: 10Gi
    consumesCounters:
    - counterSet: card-0
      counters:
        engines:
          value: "3"
        memory:
          value: 10Gi
    name: card-0-media
  - attributes:
      example.com/numa:
        int: 0
      example.com/root:
        string: r1
      fast:
        bool: true
      firmware:
        version: 2.0.0
      index:
        int: 4
      model:
        string: a
    capacity:
      memory:
        value: 40Gi
    consumesCounters:
    - counterSet: card-1
      counters:
        engines:
          value: "4"
        memory:
          value: 40Gi
    name: card-1-whole
  - attributes:
      example.com/numa:
        int: 0
      example.com/root:
        string: r1
      fast:
        bool: true
      firmware:
        version: 2.0.0
      index:
        int: 5
      model:
        string: b
    capacity:
      memory:
        value: 20Gi
    consumesCounters:
    - counterSet: card-1
      counters:
        engines:
          value: "2"
        memory:
          value: 20Gi
    name: card-1-half-0
  - attributes:
      example.com/numa:
        int: 0
      example.com/root:
        string: r1
      fast:
        bool: true
      firmware:
        version: 2.0.0
      index:
        int: 6
      model:
        string: a
    capacity:
      memory:
        value: 20Gi
    consumesCounters:
    - counterSet: card-1
      counters:
        engines:
          value: "2"
        memory:
          value: 20Gi
    name: card-1-half-1
  driver: nic.story.example.com
  nodeName: story-node-0
  pool:
    generation: 1
    name: story-node-0
    resourceSliceCount: 3
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: story-node-0-nic-2
spec:
  driver: nic.story.example.com
  nodeName: story-node-0
  pool:
    generation: 1
    name: story-node-0
    resourceSliceCount: 3
  sharedCounters:
  - counters:
      engines:
        value: "4"
      memory:
        value: 40Gi
    name: card-0
  - counters:
      engines:
        value: "4"
      memory:
        value: 40Gi
    name: card-1
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: story-node-1-nic-0
spec:
  devices:
  - attributes:
      example.com/numa:
        int: 0
      example.com/root:
        string: r0
      fast:
        bool: false
      firmware:
        version: 2.0.0
      index:
        int: 0
      model:
        string: a
    capacity:
      memory:
        value: 40Gi
    consumesCounters:
    - counterSet: card-0
      counters:
        engines:
          value: "4"
        memory:
          value: 40Gi
    name: card-0-whole
  - attributes:
      example.com/numa:
        int: 1
      example.com/root:
        string: r1
      fast:
        bool: true
      firmware:
        version: 1.2.0
      index:
        int: 1
      model:
        string: a
    capacity:
      memory:
        value: 20Gi
    consumesCounters:
    - counterSet: card-0
      counters:
        engines:
          value: "2"
        memory:
          value: 20Gi
    name: card-0-half-0
  driver: nic.story.example.com
  nodeName: story-node-1
  pool:
    generation: 1
    name: story-node-1
    resourceSliceCount: 2
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: story-node-1-nic-1
spec:
  driver: nic.story.example.com
  nodeName: story-node-1
  pool:
    generation: 1
    name: story-node-1
    resourceSliceCount: 2
  sharedCounters:
  - counters:
      engines:
        value: "4"
      memory:
        value: 40Gi
    name: card-0
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: story-node-0-fpga-0
spec:
  devices:
  - attributes:
      example.com/numa:
        int: 1
      example.com/root:
        string: r0
      fast:
        bool: false
      firmware:
        version: 2.0.0
      index:
        int: 0
      model:
        string: a
    capacity:
      memory:
        value: 10Gi
    name: dev-0
  - attributes:
      example.com/numa:
        int: 1
      fast:
        bool: false
      firmware:
        version: 2.0.0
      index:
        int: 1
      model:
        string: b
    capacity:
      memory:
        value: 20Gi
    name: dev-1
    taints:
    - effect: NoExecute
      key: example.com/worn
      value: high
  - attributes:
      example.com/numa:
        int: 1
      example.com/root:
        string: r0
      fast:
        bool: false
      firmware:
        version: 1.0.0
      index:
        int: 2
      model:
        string: b
    capacity:
      memory:
        value: 40Gi
    name: dev-2
  driver: fpga.story.example.com
  nodeName: story-node-0
  pool:
    generation: 1
    name: story-node-0
    resourceSliceCount: 2
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: story-node-0-fpga-1
spec:
  devices:
  - attributes:
      example.com/numa:
        int: 0
      example.com/root:
        string: r0
      fast:
        bool: false
      firmware:
        version: 1.0.0
      index:
        int: 3
      model:
        string: b
    capacity:
      memory:
        value: 20Gi
    name: dev-3
  driver: fpga.story.example.com
  nodeName: story-node-0
  pool:
    generation: 1
    name: story-node-0
    resourceSliceCount: 2
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: story-node-1-fpga-0
spec:
  devices:
  - attributes:
      example.com/numa:
        int: 0
      example.com/root:
        string: r0
      fast:
        bool: true
      firmware:
        version: 2.0.0
      index:
        int: 0
      model:
        string: b
    capacity:
      memory:
        value: 10Gi
    name: dev-0
  - attributes:
      example.com/numa:
        int: 0
      example.com/root:
        string: r0
      fast:
        bool: false
      firmware:
        version: 1.2.0
      index:
        int: 1
      model:
        string: a
    capacity:
      memory:
        value: 10Gi
    name: dev-1
  - attributes:
      example.com/numa:
        int: 1
      example.com/root:
        string: r1
      fast:
        bool: false
      firmware:
        version: 2.0.0
      index:
        int: 2
      model:
        string: b
    capacity:
      memory:
        value: 10Gi
    name: dev-2
  driver: fpga.story.example.com
  nodeName: story-node-1
  pool:
    generation: 1
    name: story-node-1
    resourceSliceCount: 1
EOF

# 2. pod-0, pod-1 and pod-2 come.
kubectl create -f - <<'EOF'
apiVersion: v1
kind: Pod
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: pod-1
  namespace: story
spec:
  automountServiceAccountToken: false
  containers:
  - image: registry.k8s.io/pause:3.10
    name: main
    resources: {}
  nodeSelector:
    dra.kwok.x-k8s.io/story: story
  schedulerName: default-scheduler
  serviceAccountName: pods
  terminationGracePeriodSeconds: 0
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: claim-2
  namespace: story
spec:
  devices:
    requests:
    - exactly:
        allocationMode: ExactCount
        count: 1
        deviceClassName: story-gpu
        selectors:
        - cel:
            expression: device.attributes["gpu.story.example.com"].fast || device.attributes["example.com"].numa
              == 1
      name: r0
---
apiVersion: v1
kind: Pod
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: pod-2
  namespace: story
spec:
  automountServiceAccountToken: false
  containers:
  - image: registry.k8s.io/pause:3.10
    name: main
    resources:
      claims:
      - name: claim-0
  nodeSelector:
    dra.kwok.x-k8s.io/story: story
  resourceClaims:
  - name: claim-0
    resourceClaimName: claim-2
  schedulerName: default-scheduler
  serviceAccountName: pods
  terminationGracePeriodSeconds: 0
EOF
rest
kubectl get pods,resourceclaims -n story -o wide

# 3. The driver withdraws pool story-net-0.
kubectl delete resourceslice story-net-0-gpu-0 --ignore-not-found --wait=false

# 4. Pods use the CPUs of nodes.
kubectl create -f - <<'EOF'
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: story-important
value: 1000
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: claim-3
  namespace: story
spec:
  devices:
    constraints:
    - matchAttribute: example.com/numa
    requests:
    - exactly:
        adminAccess: true
        allocationMode: ExactCount
        count: 1
        deviceClassName: story-gpu
        tolerations:
        - effect: NoSchedule
          key: example.com/reserved
          operator: Equal
          value: high
      name: r0
---
apiVersion: v1
kind: Pod
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: pod-3
  namespace: story
spec:
  automountServiceAccountToken: false
  containers:
  - image: registry.k8s.io/pause:3.10
    name: main
    resources:
      claims:
      - name: claim-0
      requests:
        cpu: "3"
  nodeSelector:
    dra.kwok.x-k8s.io/story: story
  resourceClaims:
  - name: claim-0
    resourceClaimName: claim-3
  schedulerName: default-scheduler
  serviceAccountName: pods
  terminationGracePeriodSeconds: 0
  tolerations:
  - effect: NoSchedule
    key: example.com/reserved
    operator: Exists
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: claim-4
  namespace: story
spec:
  devices:
    requests:
    - exactly:
        adminAccess: true
        allocationMode: ExactCount
        count: 2
        deviceClassName: story-nic
        selectors:
        - cel:
            expression: device.attributes["nic.story.example.com"].firmware.isGreaterThan(semver("1.0.0"))
        tolerations:
        - key: example.com/worn
          operator: Exists
      name: r0
    - exactly:
        allocationMode: ExactCount
        count: 1
        deviceClassName: story-fpga
        tolerations:
        - effect: NoExecute
          key: example.com/worn
          operator: Exists
      name: r1
    - exactly:
        allocationMode: ExactCount
        count: 1
        deviceClassName: story-fpga
        tolerations:
        - key: example.com/worn
          operator: Equal
          value: high
      name: r2
---
apiVersion: v1
kind: Pod
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: pod-4
  namespace: story
spec:
  automountServiceAccountToken: false
  containers:
  - image: registry.k8s.io/pause:3.10
    name: main
    resources:
      claims:
      - name: claim-0
      requests:
        cpu: "3"
  - image: registry.k8s.io/pause:3.10
    name: side
    resources:
      claims:
      - name: claim-0
  nodeSelector:
    dra.kwok.x-k8s.io/story: story
  resourceClaims:
  - name: claim-0
    resourceClaimName: claim-4
  schedulerName: default-scheduler
  serviceAccountName: pods
  terminationGracePeriodSeconds: 0
  tolerations:
  - effect: NoSchedule
    key: example.com/reserved
    operator: Exists
EOF
rest
kubectl get pods,resourceclaims -n story -o wide

# 5. pod-5 is more important, and wants all CPUs of a node.
kubectl create -f - <<'EOF'
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: template-1
  namespace: story
spec:
  metadata:
    labels:
      dra.kwok.x-k8s.io/story: story
  spec:
    devices:
      constraints:
      - distinctAttribute: nic.story.example.com/model
      requests:
      - exactly:
          adminAccess: true
          allocationMode: ExactCount
          count: 1
          deviceClassName: story-fpga
          selectors:
          - cel:
              expression: device.attributes["fpga.story.example.com"].fast || device.attributes["example.com"].numa
                == 1
          tolerations:
          - key: example.com/worn
            operator: Exists
        name: r0
---
apiVersion: v1
kind: Pod
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: pod-5
  namespace: story
spec:
  automountServiceAccountToken: false
  containers:
  - image: registry.k8s.io/pause:3.10
    name: main
    resources:
      limits:
        story.example.com/gpu: "1"
      requests:
        story.example.com/gpu: "1"
  nodeSelector:
    dra.kwok.x-k8s.io/story: story
  priorityClassName: story-important
  schedulerName: default-scheduler
  serviceAccountName: pods
  terminationGracePeriodSeconds: 0
EOF
rest
kubectl get pods,resourceclaims -n story -o wide

#!/bin/sh
# Story story, drawn from seed 3. It needs kubectl alone, and a cluster with a scheduler and
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
  kubectl delete resourceslices,deviceclasses,nodes,namespaces -l dra.kwok.x-k8s.io/story=story
  exit
fi

# 1. The nodes come up, and their devices are published.
kubectl create -f - <<'EOF'
apiVersion: v1
kind: Namespace
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
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
  selectors:
  - cel:
      expression: device.driver == "nic.story.example.com"
  - cel:
      expression: device.attributes["nic.story.example.com"].index < 3
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: story-node-1-gpu-0
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
      fast:
        bool: true
      firmware:
        version: 1.0.0
      index:
        int: 1
      model:
        string: b
    capacity:
      memory:
        value: 20Gi
    name: dev-1
  driver: gpu.story.example.com
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
        bool: true
      firmware:
        version: 1.2.0
      index:
        int: 0
      model:
        string: b
    capacity:
      memory:
        value: 40Gi
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
  allNodes: true
  devices:
  - attributes:
      example.com/numa:
        int: 1
      example.com/root:
        string: r0
      fast:
        bool: true
      firmware:
        version: 1.0.0
      index:
        int: 0
      model:
        string: a
    capacity:
      memory:
        value: 40Gi
    name: dev-0
  - attributes:
      example.com/numa:
        int: 1
      example.com/root:
        string: r0
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
    name: dev-1
  - attributes:
      example.com/numa:
        int: 1
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
    name: dev-2
  - attributes:
      example.com/numa:
        int: 0
      example.com/root:
        string: r1
      fast:
        bool: false
      firmware:
        version: 2.0.0
      index:
        int: 3
      model:
        string: a
    capacity:
      memory:
        value: 20Gi
    name: dev-3
  driver: gpu.story.example.com
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
  name: story-node-1-nic-0
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
        value: 40Gi
    name: dev-0
  - attributes:
      example.com/numa:
        int: 0
      example.com/root:
        string: r1
      fast:
        bool: false
      firmware:
        version: 2.0.0
      index:
        int: 1
      model:
        string: a
    capacity:
      memory:
        value: 20Gi
    name: dev-1
  driver: nic.story.example.com
  nodeName: story-node-1
  pool:
    generation: 1
    name: story-node-1
    resourceSliceCount: 1
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: story-net-0-nic-0
spec:
  allNodes: true
  devices:
  - attributes:
      example.com/numa:
        int: 1
      example.com/root:
        string: r1
      fast:
        bool: false
      firmware:
        version: 1.0.0
      index:
        int: 0
      model:
        string: a
    capacity:
      memory:
        value: 40Gi
    name: dev-0
  driver: nic.story.example.com
  pool:
    generation: 1
    name: story-net-0
    resourceSliceCount: 2
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: story-net-0-nic-1
spec:
  allNodes: true
  devices:
  - attributes:
      example.com/numa:
        int: 1
      example.com/root:
        string: r1
      fast:
        bool: false
      firmware:
        version: 1.2.0
      index:
        int: 1
      model:
        string: b
    capacity:
      memory:
        value: 20Gi
    name: dev-1
  - attributes:
      example.com/numa:
        int: 0
      example.com/root:
        string: r1
      fast:
        bool: true
      firmware:
        version: 1.2.0
      index:
        int: 2
      model:
        string: b
    capacity:
      memory:
        value: 20Gi
    name: dev-2
  - attributes:
      example.com/numa:
        int: 1
      fast:
        bool: false
      firmware:
        version: 1.0.0
      index:
        int: 3
      model:
        string: a
    capacity:
      memory:
        value: 40Gi
    name: dev-3
  driver: nic.story.example.com
  pool:
    generation: 1
    name: story-net-0
    resourceSliceCount: 2
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: story-net-1-nic-0
spec:
  allNodes: true
  devices:
  - attributes:
      example.com/numa:
        int: 0
      example.com/root:
        string: r1
      fast:
        bool: false
      firmware:
        version: 1.2.0
      index:
        int: 0
      model:
        string: b
    capacity:
      memory:
        value: 40Gi
    name: dev-0
  - attributes:
      example.com/numa:
        int: 1
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
        value: 40Gi
    name: dev-1
  - attributes:
      example.com/numa:
        int: 0
      example.com/root:
        string: r1
      fast:
        bool: false
      firmware:
        version: 2.0.0
      index:
        int: 2
      model:
        string: a
    capacity:
      memory:
        value: 10Gi
    name: dev-2
  driver: nic.story.example.com
  pool:
    generation: 1
    name: story-net-1
    resourceSliceCount: 1
EOF

# 2. pod-0, pod-1 and pod-2 come.
kubectl create -f - <<'EOF'
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
    kai.scheduler/queue: conformance
  name: claim-0
  namespace: story
spec:
  devices:
    requests:
    - exactly:
        allocationMode: ExactCount
        count: 2
        deviceClassName: story-nic
        selectors:
        - cel:
            expression: device.attributes["nic.story.example.com"].model == "a"
      name: r0
    - exactly:
        allocationMode: ExactCount
        count: 1
        deviceClassName: story-gpu
      name: r1
---
apiVersion: v1
kind: Pod
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
    kai.scheduler/queue: conformance
  name: pod-0
  namespace: story
spec:
  automountServiceAccountToken: false
  containers:
  - image: registry.k8s.io/pause:3.10
    name: main
    resources:
      claims:
      - name: claim-0
  - image: registry.k8s.io/pause:3.10
    name: side
    resources:
      claims:
      - name: claim-0
  nodeSelector:
    dra.kwok.x-k8s.io/story: story
  resourceClaims:
  - name: claim-0
    resourceClaimName: claim-0
  schedulerName: kai-scheduler
  serviceAccountName: pods
  terminationGracePeriodSeconds: 0
  tolerations:
  - effect: NoSchedule
    key: example.com/reserved
    operator: Exists
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: template-0
  namespace: story
spec:
  metadata:
    labels:
      dra.kwok.x-k8s.io/story: story
      kai.scheduler/queue: conformance
  spec:
    devices:
      config:
      - opaque:
          driver: gpu.story.example.com
          parameters:
            of: claim
        requests:
        - r1
      constraints:
      - matchAttribute: example.com/root
      requests:
      - exactly:
          allocationMode: ExactCount
          count: 1
          deviceClassName: story-gpu
        name: r0
      - exactly:
          allocationMode: ExactCount
          count: 1
          deviceClassName: story-nic
        name: r1
---
apiVersion: v1
kind: Pod
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
    kai.scheduler/queue: conformance
  name: pod-1
  namespace: story
spec:
  automountServiceAccountToken: false
  containers:
  - image: registry.k8s.io/pause:3.10
    name: main
    resources:
      claims:
      - name: claim-0
      - name: claim-1
      requests:
        cpu: 2500m
  - image: registry.k8s.io/pause:3.10
    name: side
    resources:
      claims:
      - name: claim-0
      - name: claim-1
  nodeSelector:
    dra.kwok.x-k8s.io/story: story
  resourceClaims:
  - name: claim-0
    resourceClaimName: claim-0
  - name: claim-1
    resourceClaimTemplateName: template-0
  schedulerName: kai-scheduler
  serviceAccountName: pods
  terminationGracePeriodSeconds: 0
  tolerations:
  - effect: NoSchedule
    key: example.com/reserved
    operator: Exists
---
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
      kai.scheduler/queue: conformance
  spec:
    devices:
      constraints:
      - matchAttribute: example.com/root
        requests:
        - r0
      requests:
      - exactly:
          allocationMode: ExactCount
          count: 1
          deviceClassName: story-nic
        name: r0
      - exactly:
          allocationMode: ExactCount
          count: 1
          deviceClassName: story-gpu
          selectors:
          - cel:
              expression: device.capacity["gpu.story.example.com"].memory.compareTo(quantity("20Gi"))
                >= 0
        name: r1
---
apiVersion: v1
kind: Pod
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
    kai.scheduler/queue: conformance
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
    resourceClaimTemplateName: template-1
  schedulerName: kai-scheduler
  serviceAccountName: pods
  terminationGracePeriodSeconds: 0
  tolerations:
  - effect: NoSchedule
    key: example.com/reserved
    operator: Exists
EOF
rest
kubectl get pods,resourceclaims -n story -o wide

# 3. pod-3 and pod-4 come.
kubectl create -f - <<'EOF'
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: template-2
  namespace: story
spec:
  metadata:
    labels:
      dra.kwok.x-k8s.io/story: story
      kai.scheduler/queue: conformance
  spec:
    devices:
      requests:
      - exactly:
          allocationMode: ExactCount
          count: 1
          deviceClassName: story-nic
        name: r0
      - exactly:
          allocationMode: ExactCount
          count: 1
          deviceClassName: story-gpu
          selectors:
          - cel:
              expression: device.capacity["gpu.story.example.com"].memory.compareTo(quantity("20Gi"))
                >= 0
        name: r1
---
apiVersion: v1
kind: Pod
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
    kai.scheduler/queue: conformance
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
  nodeSelector:
    dra.kwok.x-k8s.io/story: story
  resourceClaims:
  - name: claim-0
    resourceClaimTemplateName: template-2
  schedulerName: kai-scheduler
  serviceAccountName: pods
  terminationGracePeriodSeconds: 0
EOF
rest
kubectl get pods,resourceclaims -n story -o wide

#!/bin/sh
# Story story, drawn from seed 17. It needs kubectl alone, and a cluster with a scheduler and
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
    kubernetes.io/hostname: story-node-2
    topology.kubernetes.io/zone: a
  name: story-node-2
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
  selectors:
  - cel:
      expression: device.driver == "gpu.story.example.com"
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: story-node-2-gpu-0
spec:
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
        int: 2
      model:
        string: a
    capacity:
      memory:
        value: 10Gi
    name: dev-2
  - attributes:
      example.com/numa:
        int: 1
      example.com/root:
        string: r1
      fast:
        bool: true
      firmware:
        version: 2.0.0
      index:
        int: 3
      model:
        string: a
    capacity:
      memory:
        value: 40Gi
    name: dev-3
  driver: gpu.story.example.com
  nodeName: story-node-2
  pool:
    generation: 1
    name: story-node-2
    resourceSliceCount: 1
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: story-net-0-gpu-0
spec:
  devices:
  - attributes:
      example.com/numa:
        int: 1
      fast:
        bool: true
      firmware:
        version: 1.0.0
      index:
        int: 0
      model:
        string: b
    capacity:
      memory:
        value: 20Gi
    name: dev-0
  driver: gpu.story.example.com
  nodeSelector:
    nodeSelectorTerms:
    - matchExpressions:
      - key: topology.kubernetes.io/zone
        operator: In
        values:
        - b
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
  driver: gpu.story.example.com
  nodeSelector:
    nodeSelectorTerms:
    - matchExpressions:
      - key: topology.kubernetes.io/zone
        operator: In
        values:
        - a
  pool:
    generation: 1
    name: story-net-1
    resourceSliceCount: 1
EOF

# 2. Pods use the CPUs of nodes.
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
          deviceClassName: story-gpu
          selectors:
          - cel:
              expression: '"root" in device.attributes["example.com"] && device.attributes["example.com"].root
                == "r0"'
        name: r1
      - exactly:
          allocationMode: ExactCount
          count: 1
          deviceClassName: story-gpu
          selectors:
          - cel:
              expression: device.attributes["gpu.story.example.com"].index < 2
        name: r2
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
    kai.scheduler/queue: conformance
  name: claim-2
  namespace: story
spec:
  devices:
    config:
    - opaque:
        driver: gpu.story.example.com
        parameters:
          of: claim
      requests:
      - r0
    requests:
    - exactly:
        allocationMode: ExactCount
        count: 2
        deviceClassName: story-gpu
      name: r0
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
      - name: claim-1
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
    resourceClaimTemplateName: template-0
  - name: claim-1
    resourceClaimName: claim-2
  schedulerName: kai-scheduler
  serviceAccountName: pods
  terminationGracePeriodSeconds: 0
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
    kai.scheduler/queue: conformance
  name: claim-3
  namespace: story
spec:
  devices:
    constraints:
    - matchAttribute: gpu.story.example.com/model
    requests:
    - exactly:
        allocationMode: ExactCount
        count: 1
        deviceClassName: story-gpu
        selectors:
        - cel:
            expression: '"root" in device.attributes["example.com"] && device.attributes["example.com"].root
              == "r1"'
      name: r0
---
apiVersion: v1
kind: Pod
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
    kai.scheduler/queue: conformance
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
  nodeSelector:
    dra.kwok.x-k8s.io/story: story
  resourceClaims:
  - name: claim-0
    resourceClaimName: claim-3
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

# 3. pod-5 is more important, and wants all CPUs of a node.
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
      kai.scheduler/queue: conformance
  spec:
    devices:
      constraints:
      - matchAttribute: example.com/numa
      requests:
      - exactly:
          allocationMode: ExactCount
          count: 1
          deviceClassName: story-gpu
        name: r0
---
apiVersion: v1
kind: Pod
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
    kai.scheduler/queue: conformance
  name: pod-5
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
        cpu: "4"
  nodeSelector:
    dra.kwok.x-k8s.io/story: story
  priorityClassName: story-important
  resourceClaims:
  - name: claim-0
    resourceClaimTemplateName: template-1
  schedulerName: kai-scheduler
  serviceAccountName: pods
  terminationGracePeriodSeconds: 0
EOF
rest
kubectl get pods,resourceclaims -n story -o wide

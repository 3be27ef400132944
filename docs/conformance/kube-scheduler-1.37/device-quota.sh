#!/bin/sh
# Story story, drawn from seed 365. It needs kubectl alone, and a cluster with a scheduler and
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
    topology.kubernetes.io/zone: a
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
  extendedResourceName: story.example.com/gpu
  selectors:
  - cel:
      expression: device.driver == "gpu.story.example.com"
  - cel:
      expression: device.attributes["gpu.story.example.com"].index < 3
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: story-nic
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: story-node-0-nic-1
spec:
  driver: nic.story.example.com
  nodeName: story-node-0
  pool:
    generation: 1
    name: story-node-0
    resourceSliceCount: 1
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
  name: story-node-1-fpga-0
spec:
  devices:
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
        version: 2.0.0
      index:
        int: 1
      model:
        string: b
    capacity:
      memory:
        value: 40Gi
    name: dev-1
  driver: fpga.story.example.com
  nodeName: story-node-1
  pool:
    generation: 1
    name: story-node-1
    resourceSliceCount: 2
EOF

# 2. A quota limits the devices of claims.
kubectl create -f - <<'EOF'
apiVersion: v1
kind: ResourceQuota
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: quota
  namespace: story
spec:
  hard:
    story-nic.deviceclass.resource.k8s.io/devices: "4"
EOF
kubectl wait --for=jsonpath='{.status.hard}' -n story resourcequota quota

# 3. pod-0, pod-1 and pod-2 come.
kubectl create -f - <<'EOF'
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
  spec:
    devices:
      constraints:
      - distinctAttribute: fpga.story.example.com/model
        requests:
        - r0
      requests:
      - exactly:
          allocationMode: ExactCount
          count: 1
          deviceClassName: story-nic
          selectors:
          - cel:
              expression: '"root" in device.attributes["example.com"] && device.attributes["example.com"].root
                == "r1"'
        name: r0
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
  spec:
    devices:
      constraints:
      - distinctAttribute: example.com/root
      requests:
      - exactly:
          allocationMode: ExactCount
          count: 1
          deviceClassName: story-gpu
        name: r1
      - exactly:
          adminAccess: true
          allocationMode: ExactCount
          count: 1
          deviceClassName: story-gpu
          selectors:
          - cel:
              expression: device.attributes["gpu.story.example.com"].index < 2
        name: r2
---
apiVersion: v1
kind: Pod
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
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
      - name: claim-1
  nodeSelector:
    dra.kwok.x-k8s.io/story: story
  resourceClaims:
  - name: claim-0
    resourceClaimTemplateName: template-0
  - name: claim-1
    resourceClaimTemplateName: template-1
  schedulerName: default-scheduler
  serviceAccountName: pods
  terminationGracePeriodSeconds: 0
EOF
rest
kubectl get pods,resourceclaims -n story -o wide

# 4. pod-3 and pod-4 come.
kubectl create -f - <<'EOF'
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: template-4
  namespace: story
spec:
  metadata:
    labels:
      dra.kwok.x-k8s.io/story: story
  spec:
    devices:
      requests:
      - exactly:
          allocationMode: ExactCount
          count: 1
          deviceClassName: story-nic
          selectors:
          - cel:
              expression: '"root" in device.attributes["example.com"] && device.attributes["example.com"].root
                == "r1"'
        name: r0
      - exactly:
          allocationMode: ExactCount
          count: 1
          deviceClassName: story-nic
          selectors:
          - cel:
              expression: device.attributes["nic.story.example.com"].firmware.isGreaterThan(semver("1.2.0"))
        name: r1
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: template-5
  namespace: story
spec:
  metadata:
    labels:
      dra.kwok.x-k8s.io/story: story
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
      - firstAvailable:
        - allocationMode: ExactCount
          count: 2
          deviceClassName: story-nic
          name: way-0
          selectors:
          - cel:
              expression: device.capacity["nic.story.example.com"].memory.compareTo(quantity("40Gi"))
                >= 0
        - allocationMode: ExactCount
          count: 2
          deviceClassName: story-gpu
          name: way-1
        name: r0
      - firstAvailable:
        - allocationMode: ExactCount
          count: 1
          deviceClassName: story-gpu
          name: way-0
        - allocationMode: ExactCount
          count: 1
          deviceClassName: story-gpu
          name: way-1
        name: r1
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
      - name: claim-1
      requests:
        cpu: 2500m
  nodeSelector:
    dra.kwok.x-k8s.io/story: story
  resourceClaims:
  - name: claim-0
    resourceClaimTemplateName: template-4
  - name: claim-1
    resourceClaimTemplateName: template-5
  schedulerName: default-scheduler
  serviceAccountName: pods
  terminationGracePeriodSeconds: 0
  tolerations:
  - effect: NoSchedule
    key: example.com/reserved
    operator: Exists
EOF

# 5. pod-0 and pod-3 end.
kubectl patch -n story pod pod-0 --subresource=status --type=merge -p '{"status": {"phase": "Succeeded"}}'
rest
kubectl get pods,resourceclaims -n story -o wide

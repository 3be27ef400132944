#!/bin/sh
# Story story, drawn from seed 41. It needs kubectl alone, and a cluster with a scheduler and
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
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: story-fpga
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: story-net-0-fpga-0
spec:
  allNodes: true
  devices:
  - attributes:
      example.com/numa:
        int: 1
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
        value: 40Gi
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
        value: 40Gi
    name: dev-1
  driver: fpga.story.example.com
  pool:
    generation: 1
    name: story-net-0
    resourceSliceCount: 1
EOF

# 2. pod-0 and pod-1 come.
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
        deviceClassName: story-fpga
      name: r0
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
  nodeSelector:
    dra.kwok.x-k8s.io/story: story
  resourceClaims:
  - name: claim-0
    resourceClaimName: claim-0
  schedulerName: kai-scheduler
  serviceAccountName: pods
  terminationGracePeriodSeconds: 0
EOF
rest
kubectl get pods,resourceclaims -n story -o wide

# 3. Claim claim-0 is deleted.
kubectl delete -n story resourceclaim claim-0 --ignore-not-found --wait=false
rest
kubectl get pods,resourceclaims -n story -o wide

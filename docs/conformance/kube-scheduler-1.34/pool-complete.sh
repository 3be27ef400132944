#!/bin/sh
# Story story, drawn from seed 2. It needs kubectl alone, and a cluster with a scheduler and
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
    kubernetes.io/hostname: story-node-3
    topology.kubernetes.io/zone: a
  name: story-node-3
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
        int: 0
      fast:
        bool: true
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
    resourceSliceCount: 2
EOF

# 2. pod-0 and pod-1 come.
kubectl create -f - <<'EOF'
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  labels:
    dra.kwok.x-k8s.io/story: story
  name: claim-0
  namespace: story
spec:
  devices:
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
  schedulerName: default-scheduler
  serviceAccountName: pods
  terminationGracePeriodSeconds: 0
EOF
rest
kubectl get pods,resourceclaims -n story -o wide

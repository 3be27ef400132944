#!/bin/sh
# pod-placed: the only GPU is in a slice for all nodes. A Pod with a claim must get it.
. "$(dirname "$0")/common.sh"
devices() { echo 'devices: [{name: dev-0}]'; }
slice() {
  kubectl create -f - << EOF
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: $name, labels: {known: $name}}
spec:
  driver: $name.example.com
  allNodes: true
  pool: {name: pool, generation: 1, resourceSliceCount: 1}
$(sed 's/^/  /')
EOF
}
begin
claim claim "requests: [{name: r, exactly: {deviceClassName: $name}}]"
pod pod claim | kubectl create -f -
sleep 30
kubectl get events -n "$name" -o jsonpath='{range .items[*]}{.message}{"\n"}{end}'
conclude "$(kubectl get resourceclaim claim -n "$name" -o jsonpath='{.status.allocation.devices.results[*].device}')" dev-0 'the claim is allocated'

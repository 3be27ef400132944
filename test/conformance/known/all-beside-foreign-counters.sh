#!/bin/sh
# pod-placed: a Pod that asks for all devices of its node gets them, though another node has a pool with counters that is
# incomplete.
. "$(dirname "$0")/common.sh"
devices() { echo 'devices: [{name: dev-0}]'; }
begin
kubectl create -f - << EOF
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: $name-elsewhere, labels: {known: $name}}
spec:
  driver: $name-elsewhere.example.com
  nodeName: $name-elsewhere
  pool: {name: elsewhere, generation: 1, resourceSliceCount: 2}
  sharedCounters: [{name: card, counters: {engines: {value: "1"}}}]
EOF
claim all "requests: [{name: r, exactly: {deviceClassName: $name, allocationMode: All}}]"
sleep 2
pod all all | kubectl create -f -
sleep 5
conclude "$(kubectl get resourceclaim all -n "$name" -o jsonpath='{.status.allocation.devices.results[*].device}')" dev-0 'the claim gets all devices of the node'

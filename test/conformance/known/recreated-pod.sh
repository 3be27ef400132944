#!/bin/sh
# pod-placed: a Pod that waits for a binding condition is deleted and made again. Its claim must be allocated again.
. "$(dirname "$0")/common.sh"
devices() { echo 'devices: [{name: dev-0, bindingConditions: [example.com/attached], bindingFailureConditions: [example.com/broken]}]'; }
begin
claim claim "requests: [{name: r, exactly: {deviceClassName: $name}}]"
pod pod claim | kubectl create -f -
sleep 5
remove_pods
sleep 2
pod pod claim | kubectl create -f -
sleep 30
kubectl get pods -n "$name" -o jsonpath='{.items[0].status.conditions[?(@.type=="PodScheduled")].message}{"\n"}'
conclude "$(kubectl get resourceclaim claim -n "$name" -o jsonpath='{.status.allocation.devices.results[*].device}')" dev-0 'the claim of the new Pod is allocated'

#!/bin/sh
# allocation-needed: a Pod with a claim is deleted. The claim must be deallocated.
. "$(dirname "$0")/common.sh"
devices() { echo 'devices: [{name: dev-0}]'; }
begin
claim claim "requests: [{name: r, exactly: {deviceClassName: $name}}]"
pod pod claim | kubectl create -f -
kubectl wait pod pod -n "$name" --for=condition=PodScheduled --timeout=1m
kubectl get resourceclaim claim -n "$name" -o jsonpath='{.status}{" finalizers "}{.metadata.finalizers}{"\n"}'
remove_pods
sleep 20
kubectl get pods,resourceclaims -n "$name"
conclude "$(kubectl get resourceclaim claim -n "$name" -o jsonpath='{.status.allocation.devices.results[*].device}')" '' 'no claim is allocated without a Pod'

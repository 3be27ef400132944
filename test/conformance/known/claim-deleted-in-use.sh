#!/bin/sh
# reserved-while-used: a claim is deleted while a Pod that is bound has it. It must stay until the Pod has ended.
. "$(dirname "$0")/common.sh"
devices() { echo 'devices: [{name: dev-0}]'; }
begin
claim claim "requests: [{name: r, exactly: {deviceClassName: $name}}]"
pod pod claim | kubectl create -f -
kubectl wait --for=jsonpath='{.status.reservedFor}' -n "$name" resourceclaim claim --timeout=60s
kubectl wait --for=jsonpath='{.spec.nodeName}' -n "$name" pod pod --timeout=60s
kubectl delete resourceclaim claim -n "$name" --wait=false
sleep 5
kubectl get pods,resourceclaims -n "$name"
conclude "$(kubectl get resourceclaim claim -n "$name" -o jsonpath='{.status.reservedFor[*].name}' --ignore-not-found)" pod 'the claim is there, and reserved for the Pod'

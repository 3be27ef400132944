#!/bin/sh
# pod-placed: a Pod that waits for a binding condition is deleted. Its device must be free for another Pod.
. "$(dirname "$0")/common.sh"
devices() { echo 'devices: [{name: dev-0, bindingConditions: [example.com/attached], bindingFailureConditions: [example.com/broken]}]'; }
begin
claim first "requests: [{name: r, exactly: {deviceClassName: $name}}]"
claim second "requests: [{name: r, exactly: {deviceClassName: $name}}]"
pod first first | kubectl create -f -
sleep 5
pod second second | kubectl create -f -
sleep 2
kubectl delete pod first -n "$name" --grace-period=0 --force --wait=false > /dev/null 2>&1
sleep 30
kubectl get resourceclaims -n "$name"
conclude "$(kubectl get resourceclaim second -n "$name" -o jsonpath='{.status.allocation.devices.results[*].device}')" dev-0 'the claim of the second Pod is allocated'

#!/bin/sh
# pod-placed: a Pod comes before the claim that it names. It must be bound when the claim is there.
. "$(dirname "$0")/common.sh"
devices() { echo 'devices: [{name: dev-0}]'; }
begin
pod pod claim | kubectl create -f -
sleep 3
claim claim "requests: [{name: r, exactly: {deviceClassName: $name}}]"
sleep 60
kubectl get events -n "$name" -o jsonpath='{range .items[*]}{.message}{"\n"}{end}'
conclude "$(kubectl get pod pod -n "$name" -o jsonpath='{.spec.nodeName}')" "$name" 'the Pod is bound'

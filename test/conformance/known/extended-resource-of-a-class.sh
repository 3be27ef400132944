#!/bin/sh
# pod-placed: a Pod asks for the extended resource of a class, which no node has itself. It must get a device.
. "$(dirname "$0")/common.sh"
devices() { echo 'devices: [{name: dev-0}]'; }
begin
pod pod 1 | kubectl create -f -
sleep 30
kubectl get events -n "$name" -o jsonpath='{range .items[*]}{.message}{"\n"}{end}'
conclude "$(kubectl get pod pod -n "$name" -o jsonpath='{.spec.nodeName}')" "$name" 'the Pod is bound'

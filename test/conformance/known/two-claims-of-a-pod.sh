#!/bin/sh
# pod-placed, reservation-bound: a Pod has a claim for any device, and one for the first device. It must get both, and until it is
# bound none of its claims must be reserved.
. "$(dirname "$0")/common.sh"
devices() {
  echo 'devices:'
  for i in 0 1; do echo "- {name: dev-$i, attributes: {example.com/index: {int: $i}}}"; done
}
begin
claim any "requests: [{name: r, exactly: {deviceClassName: $name}}]"
claim first "requests: [{name: r, exactly: {deviceClassName: $name, selectors: [{cel: {expression: 'device.attributes[\"example.com\"].index == 0'}}]}}]"
pod pod any | sed "s/ claims: \[/&{name: first}, /; s/resourceClaims: \[.*\]/resourceClaims: [{name: claim, resourceClaimName: any}, {name: first, resourceClaimName: first}]/" | kubectl create -f -
sleep 30
kubectl get resourceclaims -n "$name" -o jsonpath='{range .items[*]}{.metadata.name}: {.status}{"\n"}{end}'
kubectl get events -n "$name" -o jsonpath='{range .items[*]}{.message}{"\n"}{end}'
conclude "$(kubectl get pod pod -n "$name" -o jsonpath='{.spec.nodeName}')" "$name" 'the Pod is bound'

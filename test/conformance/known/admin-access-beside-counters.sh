#!/bin/sh
# pod-placeable: a Pod with admin access gets a device that another Pod has, though no counter is left for a second one.
. "$(dirname "$0")/common.sh"
devices() { echo 'devices: [{name: dev-0, consumesCounters: [{counterSet: card, counters: {engines: {value: "1"}}}]}]'; }
echo 'sharedCounters: [{name: card, counters: {engines: {value: "1"}}}]' | slice "$name-counters" "$name" 2
slices=2 begin
kubectl label namespace "$name" resource.kubernetes.io/admin-access=true
claim user "requests: [{name: r, exactly: {deviceClassName: $name}}]"
claim admin "requests: [{name: r, exactly: {deviceClassName: $name, adminAccess: true}}]"
pod user user | kubectl create -f -
sleep 5
pod admin admin | kubectl create -f -
sleep 5
conclude "$(kubectl get resourceclaim admin -n "$name" -o jsonpath='{.status.allocation.devices.results[*].device}')" dev-0 'the claim with admin access gets the device'

#!/bin/sh
# device-once: Pods have claims for a device without binding conditions and for one whose driver refuses the binding. Other Pods
# wait for the former devices, which must not be allocated for them as well. It depends on time: run it again if it finds nothing.
. "$(dirname "$0")/common.sh"
count=20
devices() {
  echo 'devices:'
  for i in $(seq $count); do
    echo "- {name: plain-$i, attributes: {example.com/kind: {string: plain}}}"
    echo "- {name: slow-$i, attributes: {example.com/kind: {string: slow}}, bindingConditions: [example.com/attached], bindingFailureConditions: [example.com/broken]}"
  done
}
begin
claim_of() {
  claim "$1" "requests: [{name: r, exactly: {deviceClassName: $name, selectors: [{cel: {expression: 'device.attributes[\"example.com\"].kind == \"$2\"'}}]}}]"
}
for i in $(seq $count); do
  claim_of "slow-$i" slow
  claim_of "plain-$i" plain
  claim_of "late-$i" plain
done > /dev/null
for i in $(seq $count); do
  pod "first-$i" "slow-$i" | sed "s/ claims: \[/&{name: plain}, /; s/resourceClaims: \[/&{name: plain, resourceClaimName: plain-$i}, /"
done | kubectl create -f -
sleep 10
for i in $(seq $count); do pod "late-$i" "late-$i"; done | kubectl create -f -
sleep 12
for i in $(seq $count); do
  device=$(kubectl get resourceclaim "slow-$i" -n "$name" -o jsonpath='{.status.allocation.devices.results[*].device}')
  kubectl patch resourceclaim "slow-$i" -n "$name" --subresource=status --type=merge -p "{\"status\": {\"devices\": [{
    \"driver\": \"$name.example.com\", \"pool\": \"pool\", \"device\": \"$device\", \"conditions\": [{
      \"type\": \"example.com/broken\", \"status\": \"True\", \"reason\": \"ByHand\", \"message\": \"\", \"lastTransitionTime\": \"2026-01-01T00:00:00Z\"}]}]}}"
done
sleep 20
kubectl get resourceclaims -n "$name" -o jsonpath='{range .items[*]}{.status.allocation.devices.results[*].device} {.metadata.name}{"\n"}{end}' | grep '^plain' | sort
conclude "$(kubectl get resourceclaims -n "$name" -o jsonpath='{range .items[*]}{.status.allocation.devices.results[*].device}{"\n"}{end}' | grep plain | sort | uniq -d | tr '\n' ' ')" '' 'no device is in two claims'

#!/bin/sh
# device-quota: claims come while others go, and there are never more than the quota of the namespace allows.
. "$(dirname "$0")/common.sh"
devices() { echo 'devices: [{name: dev-0}]'; }
begin
kubectl create quota quota -n "$name" --hard="$name.deviceclass.resource.k8s.io/devices=4"
kubectl wait --for=jsonpath='{.status.hard}' -n "$name" resourcequota quota
# try makes a claim, if the quota allows it.
try() { claim "$1" "requests: [{name: r, exactly: {deviceClassName: $name}}]" > /dev/null 2>&1 || true; }
for round in $(seq 100); do
  for i in 1 2 3 4; do try "old-$i-$round" & done
  wait
  for i in 1 2 3 4; do kubectl delete resourceclaim -n "$name" "old-$i-$round" --ignore-not-found > /dev/null & done
  for i in 1 2 3 4 5 6; do try "new-$i-$round" & done
  wait
  count=$(kubectl get resourceclaims -n "$name" -o name | wc -l)
  [ "$count" -le 4 ] || break
  kubectl delete resourceclaims -n "$name" --all > /dev/null
done
[ "$count" -gt 4 ] || count=4
conclude "$count" 4 "at most 4 claims are there, for a quota of 4"

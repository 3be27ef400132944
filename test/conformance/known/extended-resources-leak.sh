#!/bin/sh
# pod-placed: devices of Pods with extended resources that are deleted while they are bound must be free afterwards. It depends
# on time: run it again if it finds nothing.
. "$(dirname "$0")/common.sh"
devices() {
  echo 'devices:'
  for i in $(seq 100); do echo "- {name: dev-$i}"; done
}
begin
create_pods() { for i in $(seq 100); do pod "pod-$i" 1; done | kubectl create -f - > /dev/null; }
churn_pods
sleep 10
kubectl get pods,resourceclaims -n "$name"
create_pods
sleep 40
conclude "$(kubectl get pods -n "$name" -o jsonpath='{.items[*].spec.nodeName}' | wc -w | tr -d ' ')" 100 'so many of 100 Pods get one of 100 free devices'

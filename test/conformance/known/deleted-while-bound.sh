#!/bin/sh
# allocation-needed: claims of Pods that are deleted while they are bound must be deallocated. It depends on time: run it again
# if it finds nothing.
. "$(dirname "$0")/common.sh"
devices() { echo 'devices: [{name: dev-0, allowMultipleAllocations: true}]'; }
begin
for i in $(seq 200); do
  cat << EOF
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: claim-$i, namespace: $name}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: $name}}]}}
---
EOF
done | kubectl create -f - > /dev/null
create_pods() { for i in $(seq 200); do pod "pod-$i" "claim-$i"; done | kubectl create -f - > /dev/null; }
churn_pods
sleep 20
kubectl get pods -n "$name"
conclude "$(kubectl get resourceclaims -n "$name" --no-headers | grep -c allocated)" 0 'no claim is allocated without a Pod'

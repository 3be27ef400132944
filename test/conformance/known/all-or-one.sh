#!/bin/sh
# pod-placed: a claim for all devices with the same model, or else for one, gets one if there are two models.
. "$(dirname "$0")/common.sh"
devices() {
  cat << 'EOF'
devices:
- {name: dev-0, attributes: {model: {string: a}}}
- {name: dev-1, attributes: {model: {string: b}}}
EOF
}
begin
kubectl create -f - << EOF
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: either, namespace: $name}
spec:
  devices:
    requests:
    - name: r
      firstAvailable: [{name: all, deviceClassName: $name, allocationMode: All}, {name: one, deviceClassName: $name}]
    constraints: [{requests: [r], matchAttribute: $name.example.com/model}]
EOF
pod either either | kubectl create -f -
sleep 5
conclude "$(kubectl get resourceclaim either -n "$name" -o jsonpath='{.status.allocation.devices.results[*].request}')" r/one 'the claim gets its second alternative'

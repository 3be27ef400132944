#!/bin/sh
# all-devices: a request for all devices must wait while a matching shared device has too little capacity left.
. "$(dirname "$0")/common.sh"
devices() {
  cat << 'EOF'
devices:
- {name: dev-0, allowMultipleAllocations: true, capacity: {memory: {value: 40Gi}}}
- {name: dev-1, allowMultipleAllocations: true, capacity: {memory: {value: 40Gi}}}
EOF
}
begin
claim one "requests: [{name: r, exactly: {deviceClassName: $name}}]"
claim all "requests: [{name: r, exactly: {deviceClassName: $name, allocationMode: All}}]"
pod one one | kubectl create -f -
sleep 5
pod all all | kubectl create -f -
sleep 5
conclude "$(kubectl get resourceclaim all -n "$name" -o jsonpath='{.status.allocation.devices.results[*].device}')" '' 'the claim for all devices gets none while one is full'

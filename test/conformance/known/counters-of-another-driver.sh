#!/bin/sh
# pod-placed: a device whose counters are free must be given away, though a pool of another driver has the same name, its
# counters are used up, and one of its devices is the first alternative.
. "$(dirname "$0")/common.sh"
devices() {
  cat << 'EOF'
devices:
- {name: dev-0, consumesCounters: [{counterSet: card, counters: {engines: {value: "1"}}}]}
- {name: dev-1, consumesCounters: [{counterSet: card, counters: {engines: {value: "1"}}}]}
EOF
}
kubectl create -f - << EOF
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: $name-other, labels: {known: $name}}
spec: {selectors: [{cel: {expression: device.driver == "$name-other.example.com"}}]}
EOF
for driver in "$name" "$name-other"; do
  echo 'sharedCounters: [{name: card, counters: {engines: {value: "1"}}}]' | slice "$driver-counters" "$driver" 2
done
devices | slice "$name-other" "$name-other" 2
slices=2 begin
claim first "requests: [{name: r, exactly: {deviceClassName: $name-other}}]"
claim second "requests: [{name: r, firstAvailable: [{name: other, deviceClassName: $name-other}, {name: own, deviceClassName: $name}]}]"
pod first first | kubectl create -f -
sleep 5
pod second second | kubectl create -f -
sleep 5
kubectl get resourceclaims -n "$name"
conclude "$(kubectl get resourceclaim second -n "$name" -o jsonpath='{.status.allocation.devices.results[*].device}')" dev-0 'the second claim gets the device of its driver'

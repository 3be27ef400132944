#!/bin/sh
# counters-total: the devices of a card with one engine must not both be allocated, though another driver has a pool of the
# same name with more engines.
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
echo 'sharedCounters: [{name: card, counters: {engines: {value: "1"}}}]' | slice "$name-counters" "$name" 2
echo 'sharedCounters: [{name: card, counters: {engines: {value: "10"}}}]' | slice "$name-other-counters" "$name-other" 2
devices | slice "$name-other" "$name-other" 2
slices=2 begin
claim first "requests: [{name: r, exactly: {deviceClassName: $name}}]"
claim second "requests: [{name: other, exactly: {deviceClassName: $name-other}}, {name: r, exactly: {deviceClassName: $name}}]"
pod first first | kubectl create -f -
sleep 5
pod second second | kubectl create -f -
sleep 5
conclude "$(kubectl get resourceclaim second -n "$name" -o jsonpath='{.status.allocation.devices.results[*].device}')" '' 'the second claim gets no devices'

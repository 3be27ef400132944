#!/bin/sh
# distinct-attribute: three devices of one request must differ in an attribute that has two values.
. "$(dirname "$0")/common.sh"
devices() {
  cat << 'EOF'
devices:
- {name: dev-0, attributes: {example.com/numa: {int: 0}}}
- {name: dev-1, attributes: {example.com/numa: {int: 1}}}
- {name: dev-2, attributes: {example.com/numa: {int: 0}}}
EOF
}
begin
claim claim "requests: [{name: r, exactly: {deviceClassName: $name, count: 3}}], constraints: [{distinctAttribute: example.com/numa}]"
pod pod claim | kubectl create -f -
sleep 5
conclude "$(kubectl get resourceclaim claim -n "$name" -o jsonpath='{.status.allocation.devices.results[*].device}')" '' 'the claim gets no devices'

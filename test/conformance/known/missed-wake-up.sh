#!/bin/sh
# pod-placed: Pods must not wait for devices that others had only until their binding failed, here because of a quota. It
# depends on time: run it again if it finds nothing.
. "$(dirname "$0")/common.sh"
devices() { echo 'devices: [{name: dev-0}, {name: dev-1}, {name: dev-2}, {name: dev-3}]'; }
begin
kubectl create -f - << EOF
apiVersion: v1
kind: ResourceQuota
metadata: {name: quota, namespace: $name}
spec: {hard: {$name.deviceclass.resource.k8s.io/devices: "3"}}
EOF
sleep 3
count_bound() { kubectl get pods -n "$name" -o jsonpath='{.items[*].spec.nodeName}' | wc -w | tr -d ' '; }
for _ in $(seq 10); do
  for i in $(seq 40); do pod "large-$i" 4; done | kubectl create -f - > /dev/null &
  sleep 1
  for i in 1 2 3; do pod "small-$i" 1; done | kubectl create -f -
  wait
  kubectl get pods -n "$name" -o name | grep large | xargs kubectl delete -n "$name" --grace-period=0 --force > /dev/null 2>&1
  sleep 5
  if [ "$(count_bound)" != 3 ]; then
    sleep 45
    break
  fi
  remove_pods
  sleep 3
done
kubectl get pods,resourceclaims -n "$name" -o wide
conclude "$(count_bound)" 3 'so many of 3 Pods get one of 4 free devices'

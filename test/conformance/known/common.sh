# What the scripts beside this file share. They need kubectl alone, and a test cluster with a scheduler and
# kube-controller-manager. $SCHEDULER names another scheduler than the default one, and $LABELS has what it wants on Pods and
# claims, such as a queue: "KEY: VALUE".

set -eu
name=$(basename "$0" .sh)
trap 'kubectl delete namespace,node,deviceclass,resourceslice -l known="$name" --wait=false > /dev/null 2>&1' EXIT

# begin makes the namespace, a node, a class whose driver is $name.example.com, and the slice with the spec in standard
# input. It also makes the extended resource $name.example.com/device.
begin() {
  kubectl create -f - << EOF
apiVersion: v1
kind: Namespace
metadata: {name: $name, labels: {known: $name}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: pods, namespace: $name}
---
apiVersion: v1
kind: Node
metadata: {name: $name, labels: {known: $name, kubernetes.io/hostname: $name}}
status:
  allocatable: {cpu: "4", memory: 8Gi, pods: "500"}
  capacity: {cpu: "4", memory: 8Gi, pods: "500"}
  conditions: [{type: Ready, status: "True", reason: ByHand}]
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: $name, labels: {known: $name}}
spec: {extendedResourceName: $name.example.com/device, selectors: [{cel: {expression: device.driver == "$name.example.com"}}]}
EOF
  devices | slice "$name" "$name" "${slices:-1}"
}

# slice makes a slice of a driver, in a pool of so many slices, with devices or counters from standard input.
slice() {
  kubectl create -f - << EOF
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: $1, labels: {known: $name}}
spec:
  driver: $2.example.com
  nodeName: $name
  pool: {name: pool, generation: 1, resourceSliceCount: $3}
$(sed 's/^/  /')
EOF
}

# claim makes a claim with a spec.
claim() {
  kubectl create -f - << EOF
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: $1, namespace: $name, labels: {${LABELS:-}}}
spec: {devices: {$2}}
EOF
}

# pod prints a Pod that has a claim, or an extended resource so many times.
pod() {
  case $2 in
    [0-9]*) uses="containers: [{name: main, image: registry.k8s.io/pause:3.10, resources: {limits: {$name.example.com/device: $2}}}]" ;;
    *) uses="resourceClaims: [{name: claim, resourceClaimName: $2}]
  containers: [{name: main, image: registry.k8s.io/pause:3.10, resources: {claims: [{name: claim}]}}]" ;;
  esac
  cat << EOF
apiVersion: v1
kind: Pod
metadata: {name: $1, namespace: $name, labels: {${LABELS:-}}}
spec:
  schedulerName: ${SCHEDULER:-default-scheduler}
  serviceAccountName: pods
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 0
  nodeSelector: {known: $name}
  tolerations: [{operator: Exists}]
  $uses
---
EOF
}

# remove_pods deletes all Pods at once.
remove_pods() { kubectl delete pods -n "$name" --all --grace-period=0 --force --wait=false > /dev/null 2>&1; }

# conclude ends a script.
conclude() {
  if [ "$1" = "$2" ]; then
    echo "kept: $3"
    exit 0
  fi
  echo "violated: $3; it is \"$1\", not \"$2\""
  exit 1
}

# churn_pods creates Pods by create_pods, and deletes them while they are bound, three times.
churn_pods() {
  for _ in 1 2 3; do
    create_pods &
    for _ in $(seq 15); do
      sleep 0.3
      remove_pods
    done
    wait
    remove_pods
  done
}

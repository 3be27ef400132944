package dractl

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/why"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// whyConfiguration are two GPUs, and two cards that are attached before Pods are bound, on
// each node. Labels of Pods hold them back, or have preparing fail.
const whyConfiguration = `
apiVersion: v1
kind: ConfigMap
metadata: {name: kwok-dra, namespace: kube-system}
data:
  configuration.yaml: |
    apiVersion: dra.kwok.x-k8s.io/v1alpha1
    kind: KwokDRAConfiguration
    metadata: {name: labels}
    spec:
      bindingDelay: BINDING
      retryInterval: 1s
      prepareWhen: {matchExpressions: [{key: .metadata.labels.hold, operator: DoesNotExist}]}
      failWhen: {matchLabels: {fail: "true"}}
    ---
    apiVersion: dra.kwok.x-k8s.io/v1alpha1
    kind: ResourcePoolTemplate
    metadata: {name: gpu}
    spec: {driver: gpu.example.com, devices: [{name: gpu, count: 2}]}
    ---
    apiVersion: dra.kwok.x-k8s.io/v1alpha1
    kind: ResourcePoolTemplate
    metadata: {name: card}
    spec: {driver: card.example.com, devices: [{name: card, count: 2, bindingConditions: [card.example.com/attached], bindingFailureConditions: [card.example.com/attach-failed]}]}
`

const whyNodes = `
apiVersion: v1
kind: Node
metadata: {name: why-0, labels: {name: why-0}, annotations: {kwok.x-k8s.io/node: fake}}
status: {allocatable: {cpu: "8", memory: 8Gi, pods: "110"}, capacity: {cpu: "8", memory: 8Gi, pods: "110"}}
---
apiVersion: v1
kind: Node
metadata: {name: why-1, labels: {name: why-1}, annotations: {kwok.x-k8s.io/node: fake}}
status: {allocatable: {cpu: "8", memory: 8Gi, pods: "110"}, capacity: {cpu: "8", memory: 8Gi, pods: "110"}}
---
apiVersion: v1
kind: Node
metadata: {name: why-2, annotations: {kwok.x-k8s.io/node: fake}}
spec: {unschedulable: true}
status: {allocatable: {cpu: "8", memory: 8Gi, pods: "110"}, capacity: {cpu: "8", memory: 8Gi, pods: "110"}}
`

const whyClass = `
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: NAME}
spec: {selectors: [{cel: {expression: device.driver == "DRIVER"}}]}
`

const whyClaimTemplate = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: NAME}
spec: {spec: {devices: {requests: [{name: device, exactly: {deviceClassName: CLASS, count: COUNT}}]}}}
`

const whyPod = `
apiVersion: v1
kind: Pod
metadata: {name: NAME, labels: {LABELS}}
spec:
  nodeSelector: {SELECTOR}
  containers: [{name: main, image: busybox, resources: {claims: [{name: device}]}}]
  resourceClaims: [{name: device, resourceClaimTemplateName: CLASS}]
`

// whyPlaces are the nodes that Pods must have, so that one GPU is left on each.
var whyPlaces = map[string]string{"held": "name: why-0", "failing": "name: why-1"}

// filled is a manifest with its words in capitals replaced.
func filled(manifest string, words ...string) string {
	return "---" + strings.NewReplacer(words...).Replace(manifest)
}

// TestWhy has Pods wait for each reason there is, asks why, and removes the cause.
func TestWhy(t *testing.T) {
	t.Parallel()
	if harness.KubernetesMinor() < 36 {
		t.Skip("binding conditions are off by default")
	}
	s := newShell(t)
	s.apply(filled(whyConfiguration, "BINDING", "1h"), filled(whyNodes),
		filled(whyClass, "NAME", "gpu", "DRIVER", "gpu.example.com"), filled(whyClass, "NAME", "card", "DRIVER", "card.example.com"),
		filled(whyClaimTemplate, "NAME", "gpu", "CLASS", "gpu", "COUNT", "1"), filled(whyClaimTemplate, "NAME", "gpus", "CLASS", "gpu", "COUNT", "2"),
		filled(whyClaimTemplate, "NAME", "card", "CLASS", "card", "COUNT", "1"), filled(whyClaimTemplate, "NAME", "late", "CLASS", "late", "COUNT", "1"))
	s.sidecar("--explain-pods-after", "1s")
	s.eventually("[ $(kubectl get resourceslices -o name | wc -l) = 6 ]")

	s.waits("unclassed", "late", "", why.Unscheduled, `there is no DeviceClass "late"`)
	s.apply(filled(whyClass, "NAME", "late", "DRIVER", "gpu.example.com"))
	s.runs("unclassed")

	s.waits("untemplated", "none", "", why.Unscheduled, `there is no ResourceClaimTemplate "none": create it`, "claim device is not created yet")
	s.must("kubectl delete pod untemplated unclassed")

	s.waits("held", "gpu", "hold: here", why.Preparing, "prepareWhen of the KwokDRAConfiguration does not select the Pod yet")
	s.must("kubectl label pod held hold-")
	s.runs("held")

	s.waits("failing", "gpu", `fail: "true"`, why.Preparing, "NodePrepareResources failed for ResourceClaim failing-device-", "failWhen selects the Pod")
	s.eventually("kwok-dractl why failing" + flat + " | grep 'it has failed'")
	s.must("kubectl label pod failing fail-")
	s.runs("failing")

	s.lacking()

	s.waits("binding", "card", "", why.Binding, "binding conditions of its devices are not True: card.example.com/attached of device card.example.com/why-")
	require.Contains(t, s.must("kwok-dractl why binding"+flat), "by its default bindingTimeout of 10m0s")
	s.apply(filled(whyConfiguration, "BINDING", "0s"))
	s.runs("binding")

	require.Contains(t, s.run("kwok-dractl why").errOut, "no Pod waits for devices")
	require.Regexp(t, `claim +prepared +for pods/binding`, s.must("kwok-dractl status claim $(kubectl get pod binding -o jsonpath='{.status.resourceClaimStatuses[0].resourceClaimName}')"))
}

// lacking has two Pods want more GPUs than are left, and compares the answer with the
// scheduler's.
func (s *shell) lacking() {
	s.Helper()
	s.waits("lacking-0", "gpus", "", why.Unscheduled, "only 2 of 4 devices of class gpu on 2 nodes can be had: 2 allocated (", "node why-2 has it all, but the node is cordoned")
	s.waits("lacking-1", "gpus", "", why.Unscheduled, "only 2 of 4 devices of class gpu")
	for _, name := range []string{"lacking-0", "lacking-1"} {
		answer := s.why(name)
		requireAsScheduler(s.T, &answer)
	}
	s.eventually("kubectl events --for pod/lacking-1 | grep -E 'WaitingForNode +Pod/lacking-1 +only 2 of 4 devices .* node why-2 has it all, but the node is cordoned'")
	require.Regexp(s, `2 Pods wait for a node \(\w+\): only 2 of 4 devices `, s.must("kwok-dractl why -A"))
	require.Regexp(s, `default +lacking-0, lacking-1 +<none> +Unscheduled +`, s.must("kwok-dractl status"))
	s.must("kubectl delete pod held failing")
	s.runs("lacking-0")
	s.runs("lacking-1")
}

// nodesOf finds the numbers of nodes in the scheduler's message.
var nodesOf = regexp.MustCompile(`0/(\d+) nodes are available: (.*?)\. `)

// requireAsScheduler holds the numbers of nodes in an answer against those of the scheduler.
func requireAsScheduler(t *testing.T, answer *why.Answer) {
	t.Helper()
	found := nodesOf.FindStringSubmatch(answer.Scheduler + " ")
	require.NotNil(t, found, answer.Scheduler)
	said := map[string]int{}
	total := 0
	for reason := range strings.SplitSeq(found[2], ", ") {
		number, text, _ := strings.Cut(reason, " ")
		count, err := strconv.Atoi(number)
		require.NoError(t, err, answer.Scheduler)
		said[text] = count
		total += count
	}
	require.Equal(t, found[1], strconv.Itoa(total))
	ours := map[string]int{}
	for _, refusal := range answer.Nodes {
		text := "cannot allocate all claims"
		if refusal.Reason == "the node is cordoned" {
			text = "node(s) were unschedulable"
		}
		ours[text] += len(refusal.Nodes)
	}
	require.Equal(t, said, ours)
}

// apply applies manifests.
func (s *shell) apply(manifests ...string) {
	s.Helper()
	s.write("why.yaml", strings.Join(manifests, ""))
	s.must("kubectl apply -f why.yaml")
}

// why is the answer for a Pod, the same each time but for what is due.
func (s *shell) why(pod string) (answer why.Answer) {
	s.Helper()
	require.NoError(s, json.Unmarshal([]byte(s.must("kwok-dractl why "+pod+" -o json")), &answer))
	return answer
}

// flat puts what is printed on one line.
const flat = " | tr -s ' \\n' ' '"

// waits makes a Pod with claims of a template, and waits until the answer is as it should be.
func (s *shell) waits(name, template, labels string, state why.State, texts ...string) {
	s.Helper()
	s.apply(filled(whyPod, "NAME", name, "CLASS", template, "LABELS", labels, "SELECTOR", whyPlaces[name]))
	line := "kwok-dractl why " + name + " -o json | grep '\"state\": \"" + string(state) + "\"'"
	for _, text := range texts {
		line += " && kwok-dractl why " + name + flat + " | grep -F '" + text + "'"
	}
	if state == why.Unscheduled {
		line += " && kwok-dractl why " + name + flat + " | grep -E 'the scheduler says: |not created'"
	}
	s.eventually(line)
}

// runs waits until a Pod runs, and the answer says so.
func (s *shell) runs(name string) {
	s.Helper()
	s.must("kubectl wait --for=jsonpath='{.status.phase}'=Running --timeout=3m pod " + name)
	require.Contains(s, s.must("kwok-dractl why "+name), "Pod default/"+name+": it runs on node why-")
}

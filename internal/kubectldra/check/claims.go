package check

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kwok-dra/kwok-dra/internal/dractl/clusterdevices"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/usage"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

const (
	// settlingTime is how long controllers may take to do their part of a claim.
	settlingTime = 5 * time.Minute
	// unusedTime is how long a claim may wait for its first Pod.
	unusedTime = time.Hour
)

func keyOf(claim *resourcev1.ResourceClaim) string { return claim.Namespace + "/" + claim.Name }

func isOlder(since *time.Time, now time.Time, than time.Duration) bool {
	return since == nil || now.Sub(*since) >= than
}

// releaseDevices is the command that takes the devices from a claim that is reserved for nobody. It fails if the claim has
// changed since: a Pod may have the devices by then.
func releaseDevices(claim *resourcev1.ResourceClaim) string {
	operations := []string{testValue("/metadata/resourceVersion", claim.ResourceVersion)}
	if len(claim.Status.Devices) > 0 {
		operations = append(operations, `{"op":"remove","path":"/status/devices"}`)
	}
	return patchStatus(claim, append(operations, `{"op":"remove","path":"/status/allocation"}`))
}

// testValue is an operation of a JSON patch that lets the whole patch fail if the value at a path is another one.
func testValue(path, value string) string {
	return fmt.Sprintf(`{"op":"test","path":%q,"value":%q}`, path, value)
}

func patchStatus(claim *resourcev1.ResourceClaim, operations []string) string {
	return fmt.Sprintf("kubectl patch resourceclaim %s -n %s --subresource=status --type=json -p '[%s]'", claim.Name, claim.Namespace, strings.Join(operations, ","))
}

func findGoneDevices(_ context.Context, w *World) []Finding {
	var findings []Finding
	for _, claim := range w.Claims {
		if claim.Status.Allocation == nil {
			continue
		}
		var gone []string
		for i := range claim.Status.Allocation.Devices.Results {
			if result := &claim.Status.Allocation.Devices.Results[i]; !w.cluster.HasDevice(result) {
				gone = append(gone, result.Driver+"/"+result.Pool+"/"+result.Device)
			}
		}
		if len(gone) == 0 {
			continue
		}
		evidence, fix := "it has "+firstFew(gone), releaseDevices(claim)
		if pods := clusterdevices.ConsumingPods(claim); len(pods) > 0 {
			evidence += " for " + firstFew(pods)
			fix = fmt.Sprintf("kubectl delete pod %s -n %s # its controller makes another, which gets another device", strings.Join(pods, " "), claim.Namespace)
		}
		findings = append(findings, Finding{Object: keyOf(claim), Evidence: evidence, Fix: fix})
	}
	return findings
}

// findStaleReservations finds claims of Pods that do not exist, which kube-controller-manager releases within seconds.
func findStaleReservations(_ context.Context, w *World) []Finding {
	var findings []Finding
	for _, claim := range w.Claims {
		var evidence, operations []string
		for i, consumer := range claim.Status.ReservedFor {
			if !facts.IsPod(consumer) || w.cluster.IsWithoutPods {
				continue
			}
			switch pod := w.cluster.FindPod(claim.Namespace, consumer.Name); {
			case pod == nil:
				evidence = append(evidence, fmt.Sprintf("Pod %s does not exist", consumer.Name))
			case pod.UID != consumer.UID:
				evidence = append(evidence, fmt.Sprintf("Pod %s is another one than that of the reservation", consumer.Name))
			default:
				continue
			}
			// From the last one on: each removal moves those after it. Where another reservation has moved to the place, the
			// patch fails.
			reservation := fmt.Sprintf("/status/reservedFor/%d", i)
			removal := []string{testValue(reservation+"/uid", string(consumer.UID)), fmt.Sprintf(`{"op":"remove","path":%q}`, reservation)}
			operations = append(removal, operations...)
		}
		if len(evidence) > 0 {
			findings = append(findings, Finding{
				Object: keyOf(claim), Evidence: strings.Join(evidence, "; ") + "; kube-controller-manager releases such claims: does it run?",
				Fix: patchStatus(claim, operations),
			})
		}
	}
	return findings
}

func findIdleClaims(_ context.Context, w *World) []Finding {
	var findings []Finding
	for _, claim := range w.Claims {
		described := w.cluster.DescribeClaim(claim)
		if claim.Status.Allocation == nil || len(claim.Status.ReservedFor) > 0 || claim.DeletionTimestamp != nil || !isOlder(described.Since, w.Now, settlingTime) {
			continue
		}
		var devices []string
		for _, device := range described.Devices {
			devices = append(devices, device.ID())
		}
		evidence := "it keeps " + firstFew(devices)
		if described.Since != nil {
			evidence += " since " + duration.HumanDuration(w.Now.Sub(*described.Since))
		}
		findings = append(findings, Finding{Object: keyOf(claim), Evidence: evidence + ", and is reserved for nobody", Fix: releaseDevices(claim)})
	}
	return findings
}

func findStuckClaims(_ context.Context, w *World) []Finding {
	var findings []Finding
	for _, claim := range w.Claims {
		if claim.DeletionTimestamp == nil || w.Now.Sub(claim.DeletionTimestamp.Time) < settlingTime {
			continue
		}
		evidence := fmt.Sprintf("deleted %s ago, and waits for finalizers %s", duration.HumanDuration(w.Now.Sub(claim.DeletionTimestamp.Time)), strings.Join(claim.Finalizers, ", "))
		// The UID, which no patch can change, spares a later claim of the same name.
		fix := fmt.Sprintf(`kubectl patch resourceclaim %s -n %s --type=merge -p '{"metadata":{"uid":%q,"finalizers":null}}'`, claim.Name, claim.Namespace, claim.UID)
		if pods := clusterdevices.ConsumingPods(claim); len(pods) > 0 {
			evidence += ", while it is reserved for " + firstFew(pods)
			fix = fmt.Sprintf("kubectl delete pod %s -n %s", strings.Join(pods, " "), claim.Namespace)
		}
		findings = append(findings, Finding{Object: keyOf(claim), Evidence: evidence, Fix: fix})
	}
	return findings
}

func findUnusedClaims(_ context.Context, w *World) []Finding {
	var findings []Finding
	for _, claim := range w.Claims {
		described := w.cluster.DescribeClaim(claim)
		goesWithPod := slices.ContainsFunc(claim.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.Kind == "Pod" })
		if described.State != usage.Unused || !isOlder(described.Since, w.Now, unusedTime) || goesWithPod {
			continue
		}
		findings = append(findings, Finding{
			Level: Hint, Object: keyOf(claim), Evidence: "it is " + duration.HumanDuration(w.Now.Sub(claim.CreationTimestamp.Time)) + " old",
			Fix: fmt.Sprintf("kubectl delete resourceclaim %s -n %s", claim.Name, claim.Namespace),
		})
	}
	return findings
}

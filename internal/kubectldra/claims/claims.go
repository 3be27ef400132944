package claims

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/listing"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/usage"
)

// New makes the command.
func New(reach *reading.Flags, streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use:     "claims [NAME... | pod/NAME...]",
		Aliases: []string{"resourceclaims"},
		Short:   "Show what each claim has, and for whom.",
		Long: `Show what each claim has, and for whom.

The state of a claim is the worst of its devices for its Pods:
  unused     the claim has no device, and no Pod names it
  waiting    the claim has no device, and Pods wait for it: "kubectl dra why" says why
  allocated  the claim has devices, which are not prepared yet
  prepared   the containers of its Pods can start, or run
  ended      its Pods have ended
  ending     the claim, or a Pod that has it, is being deleted
  idle       the claim has devices, and no Pod uses them
  failing    a device cannot be prepared, or its driver reports that it is not ready
  unhealthy  the kubelet reports that a device is not healthy
  tainted    a device has a taint that keeps Pods away: NoSchedule or NoExecute
  gone       no ResourceSlice publishes a device any more: it has gone, or its
             driver is not registered on the node`,
		Example: `  # The claims of your namespace
  kubectl dra claims

  # Those of a Pod
  kubectl dra claims pod/train-0

  # Devices that nobody uses, wherever
  kubectl dra claims -A --state idle

  # What happens to claims from now on
  kubectl dra claims -w`,
	}
	listing.AddTo(command, listing.Kind{Name: "claims", Answer: chooseClaims}, reach, streams)
	return command
}

// chooseClaims finds the claims that are asked for.
func chooseClaims(q *listing.Question, cluster *usage.Cluster) *listing.Answer {
	var chosen []*usage.Claim
	found := map[string]bool{}
	for _, claim := range cluster.ListClaims() {
		isOfPod := slices.ContainsFunc(q.Pods, func(pod string) bool { return slices.Contains(claim.Pods, pod) })
		if q.IsNamed() && !isOfPod && !slices.Contains(q.Claims, claim.Name) {
			continue
		}
		found["claim/"+claim.Name] = true
		for _, pod := range claim.Pods {
			found["pod/"+pod] = true
		}
		hasDevice := len(claim.Devices) == 0 && q.SelectsDevice(nil) || slices.ContainsFunc(claim.Devices, q.SelectsDevice)
		if q.SelectsState(claim.State) && hasDevice {
			chosen = append(chosen, claim)
		}
	}
	a := &listing.Answer{Title: countByState(chosen), Columns: claimColumns(q.Namespace == ""), Nothing: "There is no claim " + q.DescribeScope()}
	for _, claim := range chosen {
		a.Rows = append(a.Rows, newRow(q, claim))
	}
	a.Missing = findMissing(q, cluster, found)
	return a
}

// countByState counts claims by their states: "3 claims: 2 prepared, 1 waiting".
func countByState(all []*usage.Claim) string {
	counts := map[usage.State]int{}
	for _, claim := range all {
		counts[claim.State]++
	}
	var parts []string
	for _, state := range usage.States {
		if counts[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[state], state))
		}
	}
	return listing.Count(len(all), "claim") + ": " + strings.Join(parts, ", ")
}

func claimColumns(hasNamespaces bool) []output.Column {
	return []output.Column{
		{Name: "namespace", Wide: !hasNamespaces},
		{Name: "claim"},
		{Name: "state"},
		{Name: "since"},
		{Name: "node", Wide: true},
		{Name: "devices"},
		{Name: "product", Spare: 2},
		{Name: "uuids", Wide: true},
		{Name: "pods", Spare: 1},
		{Name: "reason"},
	}
}

func newRow(q *listing.Question, claim *usage.Claim) listing.Row {
	var devices, products, uuids []string
	for _, device := range claim.Devices {
		devices = append(devices, device.ID())
		if device.Product != "" && !slices.Contains(products, device.Product) {
			products = append(products, device.Product)
		}
		if device.UUID != "" {
			uuids = append(uuids, device.UUID)
		}
	}
	return listing.Row{
		Key: claim.Namespace + "/" + claim.Name,
		Cells: []string{
			claim.Namespace, claim.Name, string(claim.State), q.Age(claim.Since), output.OrNone(claim.Node), output.OrNone(devices...),
			output.OrNone(products...), output.OrNone(uuids...), output.OrNone(claim.Pods...), output.OrNone(claim.Reason),
		},
		Object: claim, IsProblem: claim.State.IsProblem(),
		Released: func() listing.Row {
			released := *claim
			released.State, released.Reason, released.Since, released.Devices, released.Pods = usage.Released, "the claim is deleted", nil, []*usage.Device{}, []string{}
			return newRow(q, &released)
		},
	}
}

// findMissing says which of the names that the user gives do not exist, or have no claim.
func findMissing(q *listing.Question, cluster *usage.Cluster, found map[string]bool) error {
	var missing []string
	for _, name := range q.Claims {
		if !found["claim/"+name] {
			missing = append(missing, cli.NotFound(fmt.Sprintf("there is no claim %q in namespace %s", name, q.Namespace), name, cluster.ClaimNames(),
				"list them with kubectl dra claims -n "+q.Namespace).Error())
		}
	}
	for _, name := range q.Pods {
		if !found["pod/"+name] {
			missing = append(missing, fmt.Sprintf("no claim in namespace %s is for a Pod %s", q.Namespace, name))
		}
	}
	return listing.JoinMissing(missing)
}

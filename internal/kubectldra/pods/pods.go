package pods

import (
	"cmp"
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
		Use:     "pods [NAME... | claim/NAME...]",
		Aliases: []string{"po"},
		Short:   "Show which Pod has which device.",
		Long: `Show which Pod has which device: a row for each device of a Pod, and one for each
claim of a Pod that has no device yet.

The state of a device is, for its Pod:
  waiting    the claim has no device yet: "kubectl dra why" says why
  allocated  the claim has the device, which is not prepared yet
  prepared   the containers of the Pod can start, or run
  failing    the device cannot be prepared, or its driver reports that it is not ready
  unhealthy  the kubelet reports that the device is not healthy
  tainted    the device has a taint that keeps Pods away: NoSchedule or NoExecute
  gone       no ResourceSlice publishes the device any more: it has gone, or its
             driver is not registered on the node
  ending     the Pod is being deleted
  ended      the Pod has ended`,
		Example: `  # The devices of the Pods of your namespace
  kubectl dra pods

  # Those of two Pods, and the Pods that use a claim
  kubectl dra pods train-0 train-1
  kubectl dra pods claim/shared-gpu

  # Devices in trouble, wherever
  kubectl dra pods -A --state failing,unhealthy,tainted,gone

  # The Pods on a kind of device
  kubectl dra pods -A --attribute model=*H100*`,
	}
	listing.AddTo(command, listing.Kind{Name: "pods", Answer: choosePods}, reach, streams)
	return command
}

// choosePods finds the devices of the Pods that are asked for.
func choosePods(q *listing.Question, cluster *usage.Cluster) *listing.Answer {
	var chosen []*usage.Use
	named := map[string]bool{}
	for _, use := range cluster.ListUses() {
		if q.IsNamed() && !slices.Contains(q.Pods, use.Pod) && !slices.Contains(q.Claims, use.Claim) {
			continue
		}
		named["pod/"+use.Pod], named["claim/"+use.Claim] = true, true
		if q.SelectsState(use.State) && q.SelectsDevice(use.Device) {
			chosen = append(chosen, use)
		}
	}
	a := &listing.Answer{Title: countPods(chosen), Columns: podColumns(q.Namespace == ""), Nothing: "No Pod has or wants a device " + q.DescribeScope()}
	for _, use := range chosen {
		a.Rows = append(a.Rows, newRow(q, use))
	}
	a.Missing = findMissing(q, cluster, named)
	return a
}

// countPods says in one line how many Pods have devices, and how many wait.
func countPods(uses []*usage.Use) string {
	devices, have, wait := map[string]bool{}, map[string]bool{}, map[string]bool{}
	var waiting *usage.Use
	for _, use := range uses {
		switch pod := use.Namespace + "/" + use.Pod; {
		case use.Device != nil:
			have[pod], devices[use.ID()] = true, true
		case use.State == usage.Waiting:
			wait[pod] = true
			waiting = cmp.Or(waiting, use)
		}
	}
	text := cli.CountWith(len(have), "Pod has ", "Pods have ") + listing.Count(len(devices), "device")
	if waiting == nil {
		return text
	}
	return fmt.Sprintf("%s, %s: kubectl dra why %s -n %s", text, cli.CountWith(len(wait), "waits", "wait"), waiting.Pod, waiting.Namespace)
}

func podColumns(hasNamespaces bool) []output.Column {
	return []output.Column{
		{Name: "namespace", Wide: !hasNamespaces},
		{Name: "pod"},
		{Name: "node", Wide: true},
		{Name: "claim", Spare: 2},
		{Name: "request", Wide: true},
		{Name: "driver", Spare: 1},
		{Name: "pool", Spare: 3},
		{Name: "device"},
		{Name: "product", Spare: 4},
		{Name: "uuid", Wide: true},
		{Name: "share", Wide: true},
		{Name: "state"},
		{Name: "since"},
		{Name: "reason"},
	}
}

func newRow(q *listing.Question, use *usage.Use) listing.Row {
	device := use.Device
	if device == nil {
		device = &usage.Device{}
	}
	none := func(text string) string { return output.OrNone(text) }
	return listing.Row{
		Key: strings.Join([]string{use.Namespace, use.Pod, use.Claim, device.Request, device.ID()}, "\n"),
		Cells: []string{
			use.Namespace, use.Pod, none(use.Node), none(use.Claim), none(device.Request), none(device.Driver), none(device.Pool), none(device.Name),
			none(device.Product), none(device.UUID), none(device.DescribeConsumed()), string(use.State), q.Age(use.Since), none(use.Reason),
		},
		Object: use, IsProblem: use.State.IsProblem(),
		Released: func() listing.Row {
			released := *use
			released.State, released.Reason, released.Since = usage.Released, "", nil
			return newRow(q, &released)
		},
	}
}

// findMissing says which of the names that the user gives do not exist, or use no device.
func findMissing(q *listing.Question, cluster *usage.Cluster, named map[string]bool) error {
	var missing []string
	for _, name := range q.Pods {
		if named["pod/"+name] {
			continue
		}
		if cluster.FindPod(q.Namespace, name) != nil {
			missing = append(missing, fmt.Sprintf("Pod %s uses no device: it has no claim", name))
			continue
		}
		missing = append(missing, cli.NotFound(fmt.Sprintf("there is no Pod %q in namespace %s", name, q.Namespace), name, cluster.PodNames(),
			"list them with kubectl get pods -n "+q.Namespace).Error())
	}
	for _, name := range q.Claims {
		if !named["claim/"+name] {
			missing = append(missing, fmt.Sprintf("no Pod in namespace %s uses a claim %s: kubectl dra claims -n %s", q.Namespace, name, q.Namespace))
		}
	}
	return listing.JoinMissing(missing)
}

package fit

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/documents"
	"github.com/kwok-dra/kwok-dra/internal/dractl/input"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/simulator"
	"github.com/kwok-dra/kwok-dra/internal/extensions/util/groupclient"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/printing"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/snapshot"
)

const long = `Say whether Pods would run in the cluster now: on which node and with which devices,
or what is missing, and which Pods of lower priority would have to go. Nothing is
written.

The files have Pods, or what makes Pods: Deployments, ReplicaSets, StatefulSets, Jobs
and CronJobs, of which all Pods have to fit. ResourceClaims, ResourceClaimTemplates and
DeviceClasses of the files count as if they were in the cluster.

The scheduler's own allocator searches the devices. Considered are also resources,
taints, labels and cordons of nodes, node affinity, the affinity, anti-affinity and
topology spread of Pods, host ports and scheduling gates. Not considered are volumes,
of which the command says so, the Pods that wait already, and quotas.
Of several nodes that fit, the scheduler may choose another one.

The exit code is 0 if all Pods fit, 1 if one does not, and 2 if the command failed.`

const example = `  # Would this Pod run here?
  kubectl dra fit -f pod.yaml

  # Would it with this class and this template?
  kubectl dra fit -f class.yaml -f template.yaml -f pod.yaml

  # As kubectl apply would get it
  kubectl kustomize overlay | kubectl dra fit -f -`

// New makes the command.
func New(reach *reading.Flags, streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use:     "fit -f FILE...",
		Short:   "Say whether Pods would run here, where, or what is missing.",
		Long:    long,
		Example: example,
		Args:    cli.NoArguments,
	}
	var files documents.Files
	files.AddTo(command, "Pods, what makes Pods, claims, claim templates and classes")
	// It fails only for a flag that does not exist.
	_ = command.MarkFlagRequired("filename")
	f := printing.NewFrame(command, reach, streams)
	var in *input.Input
	f.Run(command, func([]string) (err error) {
		in, err = readFiles(&files, f)
		return err
	}, func(ctx context.Context) error {
		verdicts, err := judge(ctx, f.Reader, in)
		if err != nil {
			return err
		}
		if err := printVerdicts(f, verdicts); err != nil {
			return err
		}
		f.TellUnseen()
		if slices.ContainsFunc(verdicts, func(v *Verdict) bool { return !v.Fits }) {
			return cli.ErrNegative
		}
		return nil
	})
	return command
}

// readFiles reads the objects of the files, with the Pods that workloads make.
func readFiles(files *documents.Files, f *printing.Frame) (*input.Input, error) {
	streams := cli.Streams{In: f.In, Out: f.Out, ErrOut: f.ErrOut}
	read, err := files.Read(streams)
	if err != nil {
		return nil, err
	}
	in := input.New(f.Namespace)
	if err := in.AddDocuments(read); err != nil {
		return nil, err
	}
	in.AddPodsOfWorkloads()
	if len(in.Waiting) == 0 {
		return nil, errors.New("read the files: they have no Pod that waits for a node, and nothing that makes Pods, such as a Deployment or a Job with parallelism")
	}
	if len(in.Skipped) > 0 {
		streams.Tell("not considered: %s\n", cli.Counted(in.Skipped))
	}
	for _, note := range in.Notes {
		streams.Tell("not considered: %s\n", note)
	}
	return in, nil
}

// judge reads the cluster, and says of each Pod whether it fits, one after the other.
func judge(ctx context.Context, reader *reading.Reader, in *input.Input) ([]*Verdict, error) {
	seen := &snapshot.Snapshot{Reader: reader}
	if err := reading.InParallel(
		func() error { return seen.ReadForScheduling(ctx, &in.World) },
		func() error { return seen.ReadPods(ctx, in.Waiting) },
		func() error { return completePods(ctx, reader, in.Waiting) },
	); err != nil {
		return nil, err
	}
	if reader.IsUnserved() {
		return nil, groupclient.ErrUnserved
	}
	for _, unread := range seen.Unread() {
		switch unread {
		case "nodes", "resourceslices", "deviceclasses", "resourceclaims":
			return nil, fmt.Errorf("read the cluster: whether a Pod fits cannot be said without the right to list %s in all namespaces: ask for the ClusterRole dra-viewer", unread)
		}
	}
	if err := readNamespaces(ctx, reader, in); err != nil {
		return nil, err
	}
	in.AddCluster(&input.Input{World: seen.World})
	in.Namespaces = append(in.Namespaces, seen.World.Namespaces...)
	scheduler := simulator.NewScheduler(&in.World)
	var verdicts []*Verdict
	for _, pod := range simulator.InOrder(in.Waiting) {
		verdicts = append(verdicts, newVerdict(ctx, scheduler, pod))
	}
	return verdicts, ctx.Err()
}

// completePods gives Pods what the API server would give them and the scheduler looks at: their priority.
func completePods(ctx context.Context, reader *reading.Reader, pods []*corev1.Pod) error {
	known := map[string]*int32{}
	for _, pod := range pods {
		name := pod.Spec.PriorityClassName
		if pod.Spec.Priority != nil || name == "" {
			continue
		}
		if _, isKnown := known[name]; !isKnown {
			class, err := reader.Client().SchedulingV1().PriorityClasses().Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return fmt.Errorf("read priorityClassName of Pod %s: there is no PriorityClass %q, so the API server refuses the Pod", pod.Name, name)
			}
			if err := reader.NoteUnseen("get", "priorityclasses", "", err); err != nil {
				return err
			}
			known[name] = nil
			if err == nil {
				known[name] = &class.Value
			}
		}
		pod.Spec.Priority = known[name]
	}
	return nil
}

// readNamespaces reads whether the namespaces permit admin access, where a claim of the files asks for it.
func readNamespaces(ctx context.Context, reader *reading.Reader, in *input.Input) error {
	names := map[string]bool{}
	for _, template := range in.ClaimTemplates {
		names[template.Namespace] = names[template.Namespace] || wantsAdminAccess(&template.Spec.Spec)
	}
	for _, claim := range in.Claims {
		names[claim.Namespace] = names[claim.Namespace] || wantsAdminAccess(&claim.Spec)
	}
	for name, wantsIt := range names {
		if !wantsIt {
			continue
		}
		namespace, err := reader.Client().CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		switch {
		case err == nil:
			in.Namespaces = append(in.Namespaces, namespace)
		case apierrors.IsNotFound(err): // then it does not permit it either
			in.Namespaces = append(in.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		default:
			if err := reader.NoteUnseen("get", "namespaces", "", err); err != nil {
				return err
			}
		}
	}
	return nil
}

func wantsAdminAccess(spec *resourcev1.ResourceClaimSpec) bool {
	for i := range spec.Devices.Requests {
		if exactly := spec.Devices.Requests[i].Exactly; exactly != nil && exactly.AdminAccess != nil && *exactly.AdminAccess {
			return true
		}
	}
	return false
}

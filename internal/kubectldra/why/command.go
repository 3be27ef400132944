package why

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/why"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/printing"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
)

const long = `Say why a Pod does not run yet, or does not end: first the reason, then the
numbers, then what each node lacks. A claim is asked about by claim/NAME, and all Pods
of a workload by deployment/NAME, replicaset/NAME, statefulset/NAME, daemonset/NAME
or job/NAME. Without a name, each reason is said once for all Pods that wait.

  Unscheduled  no node: claims, classes or templates that do not exist, and for each
               request how many devices there are, who has them, and which selector,
               constraint, taint, counter or capacity leaves too few; also resources,
               taints and labels of nodes, affinity and spread of Pods, host ports
             and scheduling gates
  Binding      devices have binding conditions that are not True yet
  Preparing    on its node the claims are not prepared: preparing fails, or the
               driver or the node is not there
  Starting     the claims are prepared, and the containers do not run
  Terminating  what keeps it: containers, unprepared claims, finalizers

Devices are searched with the scheduler's own allocator. What only the scheduler
knows, such as volumes, is quoted from it.

The command reads what the answer needs: for a Pod without a node that is all nodes,
slices, classes and claims. Without the rights for that it says less, and which
right is missing. The exit code is 0 whenever there is an answer.`

const example = `  # Why does this Pod wait?
  kubectl dra why train-0

  # Why do the Pods of this Job wait?
  kubectl dra why job/train

  # Why has this claim no devices, or why does it still have them?
  kubectl dra why claim/gpus

  # All that wait in the namespace, and in all namespaces
  kubectl dra why
  kubectl dra why -A`

// New makes the command.
func New(reach *reading.Flags, streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use:               "why [POD | KIND/NAME]...",
		Short:             "Say why Pods wait for devices, or do not start or end.",
		Long:              long,
		Example:           example,
		ValidArgsFunction: reach.CompleteNames("pods"),
	}
	var selector string
	var subjects []subject
	f := printing.NewFrame(command, reach, streams)
	reading.AddAllNamespaces(command, &f.AllNamespaces)
	command.Flags().StringVarP(&selector, "selector", "l", "", "Selector (label query) of the Pods to say this of, if no name is given.")
	f.Run(command, func(arguments []string) (err error) {
		if len(arguments) > 0 && (f.AllNamespaces || selector != "") {
			return errors.New("give names, or -A and -l: names are of one namespace")
		}
		subjects, err = parseSubjects(arguments)
		return err
	}, func(ctx context.Context) error {
		asked := &question{reader: f.Reader, namespace: f.Namespace, now: time.Now()}
		if err := asked.resolve(ctx, subjects, selector); err != nil {
			return err
		}
		answers, err := asked.findReasons(ctx)
		if err != nil {
			return err
		}
		err = asked.printAnswers(f, answers)
		f.TellUnseen()
		return err
	})
	return command
}

// printAnswers prints the answers about named Pods and claims one by one, and groups others.
func (q *question) printAnswers(f *printing.Frame, answers []*why.Answer) error {
	groups := why.Groups(slices.DeleteFunc(slices.Clone(answers), func(a *why.Answer) bool { return q.isNamed || !a.Waits() }))
	if !f.IsForPeople() {
		var objects []any
		for _, answer := range answers {
			if q.isNamed {
				objects = append(objects, answer)
			}
		}
		for _, group := range groups {
			objects = append(objects, group)
		}
		return f.Print(f.Out, nil, objects)
	}
	var text strings.Builder
	if err := q.printText(&text, answers, groups); err != nil {
		return err
	}
	return output.Text(f.Out, text.String())
}

// printText prints the answers about named Pods and claims, and the groups of others.
func (q *question) printText(out io.Writer, answers []*why.Answer, groups []*why.Group) error {
	text := q.describeNone(answers)
	switch {
	case q.isNamed:
		for i, answer := range answers {
			if i > 0 {
				_, _ = fmt.Fprintln(out)
			}
			if err := answer.Print(out, q.now); err != nil {
				return err
			}
		}
		return nil
	case len(groups) > 0:
		if err := why.PrintGroups(out, groups, q.now, "kubectl dra why"); err != nil {
			return err
		}
		text = q.describeSome(groups, len(answers))
	}
	_, err := io.WriteString(out, text)
	return err
}

// describeNone says that no Pod waits.
func (q *question) describeNone(answers []*why.Answer) string {
	where := "in namespace " + q.namespace
	if q.namespace == "" {
		where = "in any namespace"
	}
	if q.workload == nil {
		return "No Pod waits " + where + ".\n"
	}
	if len(answers) == 0 {
		return q.workload.nameWorkload() + " has no Pods: " + q.workload.describeEmpty() + "\n"
	}
	counts := map[string]int{}
	for _, answer := range answers {
		counts[string(answer.State)]++
	}
	var states []string
	for _, state := range []why.State{why.Running, why.Ended, why.Terminating} {
		if count := counts[string(state)]; count > 0 {
			states = append(states, fmt.Sprintf("%d %s", count, state))
		}
	}
	return fmt.Sprintf("No Pod of %s waits: %s.\n", q.workload.nameWorkload(), strings.Join(states, ", "))
}

// describeSome says how many Pods of a workload wait, if others do not.
func (q *question) describeSome(groups []*why.Group, all int) string {
	waiting := 0
	for _, group := range groups {
		waiting += len(group.Pods)
	}
	if q.workload == nil || waiting == all {
		return ""
	}
	return fmt.Sprintf("%d of %d Pods of %s wait.\n", waiting, all, q.workload.nameWorkload())
}

package listing

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/selecting"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/usage"
)

// Question is what the user asks for.
type Question struct {
	// Namespace is empty for all.
	Namespace string
	// Pods and Claims are those that the user names. Without any, all are meant.
	Pods, Claims []string
	// Now is for ages.
	Now time.Time

	// States and Attributes are those that the user asks for: NAME=VALUE. Without any, all are meant.
	States, Attributes []string

	selector string
}

func (q *Question) addFlags(command *cobra.Command, selected string) {
	flags := command.Flags()
	flags.StringVarP(&q.selector, "selector", "l", "", "Selector of labels of the "+selected+", as for kubectl get.")
	flags.StringSliceVar(&q.States, "state", nil, "Only those in one of these states: "+strings.Join(stateNames(), ", ")+".")
	flags.StringArrayVar(&q.Attributes, "attribute", nil, "Only those with a device that has this attribute or capacity: NAME=VALUE, NAME!=VALUE, or NAME. NAME is with or without its domain, VALUE may have *. Give several to require all.")
	// It fails only for a flag that does not exist.
	_ = command.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(stateNames(), cobra.ShellCompDirectiveNoFileComp))
}

func stateNames() []string {
	names := make([]string, len(usage.States))
	for i, state := range usage.States {
		names[i] = string(state)
	}
	return names
}

// complete takes the arguments of the command, of which those without a kind are of that kind, and checks the flags.
func (q *Question) complete(kind string, arguments []string, isOfAllNamespaces bool) error {
	for _, state := range q.States {
		if !slices.Contains(stateNames(), state) {
			return cli.NotFound(fmt.Sprintf("parse --state %s: there is no such state", state), state, stateNames(), "it is one of "+strings.Join(stateNames(), ", "))
		}
	}
	for _, attribute := range q.Attributes {
		name, _, hasValue := strings.Cut(attribute, "=")
		if name == "" || name == "!" || !hasValue && strings.HasSuffix(name, "!") {
			return fmt.Errorf("parse --attribute %q: write NAME=VALUE, NAME!=VALUE or NAME, such as model=*H100*", attribute)
		}
	}
	if _, err := labels.Parse(q.selector); err != nil {
		return fmt.Errorf("parse --selector: %w", err)
	}
	if len(arguments) > 0 && (q.selector != "" || isOfAllNamespaces) {
		return errors.New("names cannot be given with -l or -A")
	}
	for _, argument := range arguments {
		if err := q.addName(kind, argument); err != nil {
			return err
		}
	}
	return nil
}

func (q *Question) addName(kind, argument string) error {
	if given, name, hasKind := strings.Cut(argument, "/"); hasKind {
		kind, argument = given, name
	}
	switch strings.TrimSuffix(kind, ".resource.k8s.io") {
	case "pod", "pods", "po":
		q.Pods = append(q.Pods, argument)
	case "claim", "claims", "resourceclaim", "resourceclaims":
		q.Claims = append(q.Claims, argument)
	default:
		return fmt.Errorf("%s/%s: only Pods and claims have devices: write pod/NAME or claim/NAME", kind, argument)
	}
	return nil
}

// IsNamed reports whether the user names Pods or claims.
func (q *Question) IsNamed() bool { return len(q.Pods)+len(q.Claims) > 0 }

// SelectsState reports whether the user asks for a state.
func (q *Question) SelectsState(state usage.State) bool {
	return len(q.States) == 0 || slices.Contains(q.States, string(state))
}

// SelectsDevice reports whether a device has the attributes that the user asks for.
func (q *Question) SelectsDevice(device *usage.Device) bool {
	for _, attribute := range q.Attributes {
		name, pattern, hasValue := strings.Cut(attribute, "=")
		name, isUnlike := strings.CutSuffix(name, "!")
		if device == nil {
			return false
		}
		value, found := device.Attribute(name)
		if !hasValue && !found || hasValue && (found && selecting.MatchesPattern(value, pattern)) == isUnlike {
			return false
		}
	}
	return true
}

// DescribeScope says where was looked, for an answer that has nothing.
func (q *Question) DescribeScope() string {
	scope := "in all namespaces"
	if q.Namespace != "" {
		scope = "in namespace " + q.Namespace
	}
	var with []string
	if q.selector != "" {
		with = append(with, "-l "+q.selector)
	}
	if len(q.States) > 0 {
		with = append(with, "--state "+strings.Join(q.States, ","))
	}
	if len(q.Attributes) > 0 {
		with = append(with, "--attribute "+strings.Join(q.Attributes, ","))
	}
	if len(with) > 0 {
		scope += " with " + strings.Join(with, " and ")
	}
	return scope
}

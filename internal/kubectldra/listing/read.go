package listing

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/usage"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// failedPrepare is the reason of the events of kubelets that cannot prepare claims.
const failedPrepare = "FailedPrepareDynamicResources"

// Read reads the Pods that a selector selects and the claims of a namespace, or of all, and their devices. Slices
// are read only if a claim has a device.
func Read(ctx context.Context, reader *reading.Reader, namespace, podSelector string) (objects usage.Objects, err error) {
	err = reading.InParallel(
		func() (err error) { objects.Pods, err = reader.Pods(ctx, namespace, podSelector); return err },
		func() (err error) { objects.Claims, err = reader.Claims(ctx, namespace); return err },
		func() (err error) {
			objects.Failures, err = reader.Events(ctx, namespace, "reason="+failedPrepare)
			return err
		},
	)
	if err != nil {
		return objects, err
	}
	if slices.ContainsFunc(objects.Claims, func(claim *resourcev1.ResourceClaim) bool { return claim.Status.Allocation != nil }) {
		var rules []*resourcev1.DeviceTaintRule
		err = reading.InParallel(
			func() (err error) { objects.Slices, err = reader.Slices(ctx); return err },
			func() (err error) { rules, err = reader.TaintRules(ctx); return err },
		)
		objects.Rules = ConvertRules(rules)
	}
	for _, unseen := range reader.Unseen() {
		noteUnseen(&objects, unseen.Resource)
	}
	return objects, err
}

// ConvertRules makes the inventory's rules of DeviceTaintRules.
func ConvertRules(rules []*resourcev1.DeviceTaintRule) []inventory.TaintRule {
	converted := make([]inventory.TaintRule, len(rules))
	for i, rule := range rules {
		converted[i] = inventory.TaintRuleOf(rule)
	}
	return converted
}

// noteUnseen marks what could not be read.
func noteUnseen(objects *usage.Objects, resource string) {
	switch resource {
	case "pods":
		objects.IsWithoutPods = true
	case "resourceclaims":
		objects.IsWithoutClaims = true
	case "resourceslices":
		objects.IsWithoutSlices = true
	}
}

// ReadFor reads what is known of a claim: the Pods and events of its namespace, and the slices with its devices.
func ReadFor(ctx context.Context, reader *reading.Reader, claim *resourcev1.ResourceClaim) (objects usage.Objects, events []*corev1.Event, err error) {
	var rules []*resourcev1.DeviceTaintRule
	err = reading.InParallel(
		func() (err error) { objects.Pods, err = reader.Pods(ctx, claim.Namespace, ""); return err },
		func() (err error) { events, err = reader.Events(ctx, claim.Namespace, ""); return err },
		func() (err error) {
			if claim.Status.Allocation == nil {
				return nil
			}
			objects.Slices, err = readSlicesOf(ctx, reader, claim)
			return err
		},
		func() (err error) { rules, err = reader.TaintRules(ctx); return err },
	)
	objects.Claims, objects.Rules = []*resourcev1.ResourceClaim{claim}, ConvertRules(rules)
	objects.Failures = slices.DeleteFunc(slices.Clone(events), func(event *corev1.Event) bool { return event.Reason != failedPrepare })
	for _, unseen := range reader.Unseen() {
		noteUnseen(&objects, unseen.Resource)
	}
	return objects, events, err
}

// readSlicesOf reads the slices of the node of a claim, or all if these do not have its devices.
func readSlicesOf(ctx context.Context, reader *reading.Reader, claim *resourcev1.ResourceClaim) ([]*resourcev1.ResourceSlice, error) {
	node := facts.NodeOf(claim)
	if node == "" {
		return reader.Slices(ctx)
	}
	list, err := reader.Client().ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{FieldSelector: resourcev1.ResourceSliceSelectorNodeName + "=" + node})
	if err != nil {
		return nil, reader.NoteUnseen("list", "resourceslices", "", err)
	}
	all := make([]*resourcev1.ResourceSlice, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	cluster := usage.NewCluster(usage.Objects{Slices: all})
	for i := range claim.Status.Allocation.Devices.Results {
		if !cluster.HasDevice(&claim.Status.Allocation.Devices.Results[i]) {
			return reader.Slices(ctx)
		}
	}
	return all, nil
}

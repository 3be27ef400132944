package taintrules

import (
	"context"
	"encoding/json"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/kwok-dra/kwok-dra/internal/extensions/util/groupclient"
)

// version is a version of the API. The content of rules is the same in all versions.
type version struct {
	name     string
	list     func(ctx context.Context, client groupclient.Interface, options metav1.ListOptions) (runtime.Object, error)
	informer func(client groupclient.Interface) cache.SharedIndexInformer
}

// versions are those that API servers of the supported releases may have, the newest first.
var versions = []version{
	{
		name: "v1",
		list: func(ctx context.Context, client groupclient.Interface, options metav1.ListOptions) (runtime.Object, error) {
			return client.ResourceV1().DeviceTaintRules().List(ctx, options)
		},
		informer: func(client groupclient.Interface) cache.SharedIndexInformer {
			return groupclient.NewInformer(client, client.ResourceV1().DeviceTaintRules(), &resourcev1.DeviceTaintRule{}, metav1.ListOptions{})
		},
	},
	{
		name: "v1beta2",
		list: func(ctx context.Context, client groupclient.Interface, options metav1.ListOptions) (runtime.Object, error) {
			return client.ResourceV1beta2().DeviceTaintRules().List(ctx, options)
		},
		informer: func(client groupclient.Interface) cache.SharedIndexInformer {
			return groupclient.NewInformer(client, client.ResourceV1beta2().DeviceTaintRules(), &resourcev1beta2.DeviceTaintRule{}, metav1.ListOptions{})
		},
	},
	{
		name: "v1alpha3",
		list: func(ctx context.Context, client groupclient.Interface, options metav1.ListOptions) (runtime.Object, error) {
			return client.ResourceV1alpha3().DeviceTaintRules().List(ctx, options)
		},
		informer: func(client groupclient.Interface) cache.SharedIndexInformer {
			return groupclient.NewInformer(client, client.ResourceV1alpha3().DeviceTaintRules(), &resourcev1alpha3.DeviceTaintRule{}, metav1.ListOptions{})
		},
	},
}

// findVersion lists rules in the newest version that the API server has. It returns nil without
// an error where the server has none: then no rule can exist.
func findVersion(ctx context.Context, client groupclient.Interface, options metav1.ListOptions) (*version, runtime.Object, error) {
	for i := range versions {
		list, err := versions[i].list(ctx, client, options)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return nil, nil, fmt.Errorf("list devicetaintrules: %w", err)
		}
		return &versions[i], list, nil
	}
	return nil, nil, nil
}

// List lists the rules of a cluster. Without the right to list them it returns none, and
// unseen says so.
func List(ctx context.Context, client groupclient.Interface) (rules []*resourcev1.DeviceTaintRule, unseen string, err error) {
	rules, err = ListVersion(ctx, client)
	if apierrors.IsForbidden(err) {
		return nil, describeUnseen(err), nil
	}
	return rules, "", err
}

// ListVersion lists the rules of a cluster in the newest version that the API server has, and none where it has
// no version.
func ListVersion(ctx context.Context, client groupclient.Interface) ([]*resourcev1.DeviceTaintRule, error) {
	_, list, err := findVersion(ctx, client, metav1.ListOptions{})
	if err != nil || list == nil {
		return nil, err
	}
	var read resourcev1.DeviceTaintRuleList
	if err := convertTo(list, &read); err != nil {
		return nil, err
	}
	var rules []*resourcev1.DeviceTaintRule
	for i := range read.Items {
		rules = append(rules, &read.Items[i])
	}
	return rules, nil
}

// describeUnseen says that the taints of rules are left out.
func describeUnseen(err error) string {
	return fmt.Sprintf("DeviceTaintRules are not seen, and devices are shown without their taints: %v", err)
}

// convertTo makes an object of v1 of one of another version.
func convertTo(from, to any) error {
	text, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		return fmt.Errorf("read devicetaintrules: %w", err)
	}
	return nil
}

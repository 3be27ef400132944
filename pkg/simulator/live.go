package simulator

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Read reads the state of a cluster, and all of its Pods, of which the World has none yet.
func Read(ctx context.Context, client kubernetes.Interface) (*World, []*corev1.Pod, error) {
	in := &World{}
	all := metav1.ListOptions{ResourceVersion: "0"} // from the cache of the API server
	nodes, err := client.CoreV1().Nodes().List(ctx, all)
	if err != nil {
		return nil, nil, fmt.Errorf("list nodes: %w", err)
	}
	in.Nodes = pointers(nodes.Items)
	slices, err := client.ResourceV1().ResourceSlices().List(ctx, all)
	if err != nil {
		return nil, nil, fmt.Errorf("list resourceslices: %w", err)
	}
	in.Slices = pointers(slices.Items)
	classes, err := client.ResourceV1().DeviceClasses().List(ctx, all)
	if err != nil {
		return nil, nil, fmt.Errorf("list deviceclasses: %w", err)
	}
	in.Classes = pointers(classes.Items)
	claims, err := client.ResourceV1().ResourceClaims("").List(ctx, all)
	if err != nil {
		return nil, nil, fmt.Errorf("list resourceclaims: %w", err)
	}
	in.Claims = pointers(claims.Items)
	templates, err := client.ResourceV1().ResourceClaimTemplates("").List(ctx, all)
	if err != nil {
		return nil, nil, fmt.Errorf("list resourceclaimtemplates: %w", err)
	}
	in.ClaimTemplates = pointers(templates.Items)
	pods, err := client.CoreV1().Pods("").List(ctx, all)
	if err != nil {
		return nil, nil, fmt.Errorf("list pods: %w", err)
	}
	in.TaintRules, err = taintRules(ctx, client)
	return in, pointers(pods.Items), err
}

// taintRules reads the DeviceTaintRules in the newest version that the cluster
// has. Their content is the same in all versions.
func taintRules(ctx context.Context, client kubernetes.Interface) ([]*resourcev1.DeviceTaintRule, error) {
	for _, list := range []func() (any, error){
		func() (any, error) { return client.ResourceV1().DeviceTaintRules().List(ctx, metav1.ListOptions{}) },
		func() (any, error) {
			return client.ResourceV1beta2().DeviceTaintRules().List(ctx, metav1.ListOptions{})
		},
		func() (any, error) {
			return client.ResourceV1alpha3().DeviceTaintRules().List(ctx, metav1.ListOptions{})
		},
	} {
		found, err := list()
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			continue // the API is off, or is not for this user
		}
		if err != nil {
			return nil, fmt.Errorf("list devicetaintrules: %w", err)
		}
		text, err := json.Marshal(found)
		if err != nil {
			return nil, fmt.Errorf("read devicetaintrules: %w", err)
		}
		var rules resourcev1.DeviceTaintRuleList
		if err := json.Unmarshal(text, &rules); err != nil {
			return nil, fmt.Errorf("read devicetaintrules: %w", err)
		}
		return pointers(rules.Items), nil
	}
	return nil, nil
}

func pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// storyNamespace is where stories make their objects.
const storyNamespace = "default"

// endOfStory bounds the removal of what a story made. kube-controller-manager looks for new
// kinds of owners every 30 seconds.
const endOfStory = 2 * time.Minute

// seen bounds the wait until all watchers have seen what happened.
const seen = 30 * time.Second

// podClaimAnnotation is what the entry in the spec of a claim's Pod is called.
const podClaimAnnotation = "resource.kubernetes.io/pod-claim-name"

// object is what stories read of Pods and claims.
type object struct {
	Metadata struct {
		Name, UID       string
		Annotations     map[string]string
		OwnerReferences []struct{ UID string }
	}
	Spec struct {
		ResourceClaims []struct{ Name, ResourceClaimName, ResourceClaimTemplateName string }
	}
	Status struct {
		// Of Pods.
		Phase                 string
		Conditions            []condition
		ResourceClaimStatuses []struct{ Name, ResourceClaimName string }
		// Of claims.
		Allocation  *struct{ Devices struct{ Results []device } }
		ReservedFor []struct{ UID string }
		Devices     []struct {
			device
			Conditions []condition
		}
	}
}

type condition struct{ Type, Status string }

type device struct{ Driver, Pool, Device string }

// objects reads all objects of a resource in the namespace of stories.
func (w *world) objects(ctx context.Context, resource string) ([]object, error) {
	said, err := w.Kubectl(ctx, "-n", storyNamespace, "get", resource, "-o", "json")
	if err != nil {
		return nil, err
	}
	var list struct{ Items []object }
	if err := json.Unmarshal([]byte(said), &list); err != nil {
		return nil, fmt.Errorf("read %s: %w", resource, err)
	}
	return list.Items, nil
}

// perform applies a manifest, plays, and deletes what the manifest made.
func (w *world) perform(ctx context.Context, manifest string, play func() error) error {
	if _, err := w.Kubectl(ctx, "apply", "-f", manifest); err != nil {
		return err
	}
	return errors.Join(play(), deleteWithin(ctx, w, endOfStory, manifest))
}

// deleteWithin deletes what a manifest or a folder of manifests made, also when the time of the story is up.
func deleteWithin(ctx context.Context, w *world, limit time.Duration, path string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	_, err := w.Kubectl(ctx, "delete", "--ignore-not-found", "-f", path)
	if err == nil {
		_, err = w.Kubectl(ctx, "-n", storyNamespace, "wait", "--for=delete", "--timeout="+(limit*3/4).String(), "pods,resourceclaims", "--all")
	}
	return err
}

// prepared reports what is wrong with claims that have to be allocated and prepared, with
// as many devices in all as are wanted, none of them twice.
func prepared(claims []object, devices int) error {
	var all []device
	for _, claim := range claims {
		if claim.Status.Allocation == nil {
			return fmt.Errorf("look at claim %s: it is not allocated", claim.Metadata.Name)
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			if slices.Contains(all, result) {
				return fmt.Errorf("look at claim %s: another claim has device %s of pool %s too", claim.Metadata.Name, result.Device, result.Pool)
			}
			if !claim.ready(result) {
				return fmt.Errorf("look at claim %s: device %s of pool %s is not prepared", claim.Metadata.Name, result.Device, result.Pool)
			}
			all = append(all, result)
		}
	}
	if len(all) != devices {
		return fmt.Errorf("count the devices of %d claims: want %d, got %d", len(claims), devices, len(all))
	}
	return nil
}

// ready reports whether the claim says that a device is prepared.
func (o object) ready(d device) bool {
	for _, status := range o.Status.Devices {
		if status.device == d {
			return slices.Contains(status.Conditions, condition{Type: "Ready", Status: "True"})
		}
	}
	return false
}

// ended reports what is wrong with Pods that have to have run to their ends, each with its
// claims prepared.
func ended(pods []object, count int) error {
	if len(pods) != count {
		return fmt.Errorf("count Pods: want %d, got %d", count, len(pods))
	}
	for _, pod := range pods {
		switch {
		case pod.Status.Phase != "Succeeded":
			return fmt.Errorf("look at Pod %s: it is %s", pod.Metadata.Name, pod.Status.Phase)
		case len(pod.Spec.ResourceClaims) == 0 || len(pod.Status.ResourceClaimStatuses) != len(pod.Spec.ResourceClaims):
			return fmt.Errorf("look at Pod %s: it had %d claims of the %d in its spec, want all and at least one",
				pod.Metadata.Name, len(pod.Status.ResourceClaimStatuses), len(pod.Spec.ResourceClaims))
		case !slices.Contains(pod.Status.Conditions, condition{Type: "PodReadyToStartContainers", Status: "True"}):
			return fmt.Errorf("look at Pod %s: its claims were not prepared", pod.Metadata.Name)
		}
	}
	return nil
}

// endedWithClaims checks that all Pods, as many as are wanted, have run with claims, which
// are free again.
func (w *world) endedWithClaims(ctx context.Context, count int) error {
	pods, err := w.objects(ctx, "pods")
	if err != nil {
		return err
	}
	if err := ended(pods, count); err != nil {
		return err
	}
	_, err = w.Kubectl(ctx, "-n", storyNamespace, "wait", "--for=delete", "--timeout=30s", "resourceclaims", "--all")
	return err
}

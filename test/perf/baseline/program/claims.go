package main

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	resourcev1ac "k8s.io/client-go/applyconfigurations/resource/v1"

	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
)

// rawClaims prepares all Pods by what their claims say, which it lists once.
func (p *program) rawClaims(ctx context.Context) (writes, error) {
	list, err := p.client.ResourceV1().ResourceClaims(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list claims: %w", err)
	}
	return func(ctx context.Context) error {
		return fleet.InParallel(len(list.Items), func(i int) error {
			claim := &list.Items[i]
			if err := p.writeClaimStatus(ctx, claim); err != nil {
				return err
			}
			user := claim.Status.ReservedFor[0]
			return p.writePodStatus(ctx, types.NamespacedName{Namespace: claim.Namespace, Name: user.Name}, user.UID)
		})
	}, nil
}

// writeClaimStatus writes to a claim that its devices are prepared, by the call of the sidecar.
func (p *program) writeClaimStatus(ctx context.Context, claim *resourcev1.ResourceClaim) error {
	status, now := resourcev1ac.ResourceClaimStatus(), metav1.Now()
	for _, result := range claim.Status.Allocation.Devices.Results {
		status.WithDevices(resourcev1ac.AllocatedDeviceStatus().WithDriver(result.Driver).WithPool(result.Pool).WithDevice(result.Device).
			WithConditions(metav1ac.Condition().WithType("Ready").WithStatus(metav1.ConditionTrue).
				WithReason("Prepared").WithMessage("device is prepared").WithLastTransitionTime(now)))
	}
	config := resourcev1ac.ResourceClaim(claim.Name, claim.Namespace).WithUID(claim.UID).WithResourceVersion(claim.ResourceVersion).WithStatus(status)
	_, err := p.client.ResourceV1().ResourceClaims(claim.Namespace).ApplyStatus(ctx, config, metav1.ApplyOptions{FieldManager: "baseline", Force: true})
	if err != nil {
		return fmt.Errorf("apply claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return nil
}

// startPatch is the sidecar's patch of a Pod.
type startPatch struct {
	Metadata struct {
		UID types.UID `json:"uid"`
	} `json:"metadata"`
	Status corev1.PodStatus `json:"status"`
}

// writePodStatus writes to a Pod that its containers can start, by the call of the sidecar.
func (p *program) writePodStatus(ctx context.Context, pod types.NamespacedName, uid types.UID) error {
	var patch startPatch
	patch.Metadata.UID = uid
	patch.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue, ObservedGeneration: 1, LastTransitionTime: metav1.Now(),
	}}
	encoded, err := json.Marshal(&patch)
	if err != nil {
		return fmt.Errorf("encode status of pod %s: %w", pod, err)
	}
	if _, err := p.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, encoded, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("write status of pod %s: %w", pod, err)
	}
	return nil
}

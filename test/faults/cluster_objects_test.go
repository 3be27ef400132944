package faults

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// terminatesLabel is on Pods that stay Terminating until their claims are unprepared, as on a
// kubelet. All others go at once.
const terminatesLabel = "terminates"

// fastStages are kwok's own fast Stages, with the project's in place of pod-ready.
func fastStages(ctx context.Context, dir string) ([]string, error) {
	kwok, err := sidecar.ModuleDir(ctx, "sigs.k8s.io/kwok")
	if err != nil {
		return nil, err
	}
	files := []string{
		filepath.Join(kwok, "kustomize/stage/node/fast/node-initialize.yaml"),
		filepath.Join(kwok, "kustomize/stage/pod/fast/pod-complete.yaml"),
		filepath.Join(sidecar.Root(), "stages/pod/fast/pod-ready.yaml"),
	}
	for _, file := range files {
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("find Stage: %w", err)
		}
	}
	for operator, file := range map[string]string{
		"DoesNotExist": filepath.Join(kwok, "kustomize/stage/pod/fast/pod-delete.yaml"),
		"Exists":       filepath.Join(sidecar.Root(), "stages/pod/general/pod-delete.yaml"),
	} {
		narrowed, err := narrowStage(file, operator, dir)
		if err != nil {
			return nil, err
		}
		files = append(files, narrowed)
	}
	return files, nil
}

// narrowStage writes a Stage anew that is for Pods with the label, or without.
func narrowStage(file, operator, dir string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read Stage: %w", err)
	}
	const selector, name = "    matchExpressions:\n", "  name: pod-delete\n"
	narrowed := string(text)
	for before, after := range map[string]string{
		selector: selector + "    - {key: .metadata.labels." + terminatesLabel + ", operator: " + operator + "}\n",
		name:     "  name: pod-delete-" + strings.ToLower(operator) + "\n",
	} {
		if strings.Count(narrowed, before) != 1 {
			return "", fmt.Errorf("narrow Stage: %s does not have %q once", file, before)
		}
		narrowed = strings.Replace(narrowed, before, after, 1)
	}
	path := filepath.Join(dir, strings.ToLower(operator)+".yaml")
	return path, os.WriteFile(path, []byte(narrowed), 0o600)
}

// claimTemplates are the ResourceClaimTemplates by the classes they ask for.
var claimTemplates = map[string][]string{"gpu": {"gpu"}, "both": {"gpu", "nic"}, "fabric": {"fabric"}}

// furnish makes the namespace, the classes and the claim templates.
func (c clients) furnish(ctx context.Context) error {
	_, err := c.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create namespace: %w", err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := c.client.CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create ServiceAccount: %w", err)
	}
	for name, driver := range map[string]string{"gpu": gpuDriver, "nic": nicDriver, "fabric": fabricDriver} {
		class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.DeviceClassSpec{
			Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)}}},
		}}
		if _, err := c.client.ResourceV1().DeviceClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create DeviceClass %s: %w", name, err)
		}
	}
	for name, classes := range claimTemplates {
		template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: claimSpec(classes)}}
		if _, err := c.client.ResourceV1().ResourceClaimTemplates(namespace).Create(ctx, template, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create ResourceClaimTemplate %s: %w", name, err)
		}
	}
	return nil
}

// define makes the definitions of the custom resources.
func (w *world) define(ctx context.Context) error {
	_, err := w.cluster.Kubectl(ctx, "apply", "-k", filepath.Join(sidecar.Root(), "kustomize", "crd"))
	return err
}

func claimSpec(classes []string) resourcev1.ResourceClaimSpec {
	spec := resourcev1.ResourceClaimSpec{}
	for _, class := range classes {
		spec.Devices.Requests = append(spec.Devices.Requests, resourcev1.DeviceRequest{
			Name: class, Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class},
		})
	}
	return spec
}

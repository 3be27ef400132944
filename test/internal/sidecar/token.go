package sidecar

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kwok-dra/kwok-dra/test/cluster"
)

// The ServiceAccount of the kwok controller, which the sidecar shares.
const (
	serviceAccountNamespace = "kube-system"
	serviceAccount          = "kwok-controller"
)

// ServiceAccount writes a kubeconfig with a token of the ServiceAccount that
// the sidecar has in a cluster, bound to kwok's own rules and those of
// kustomize/rbac, so that a verb that they lack fails.
func ServiceAccount(ctx context.Context, c *cluster.Cluster) (string, error) {
	kwok, err := ModuleDir(ctx, "sigs.k8s.io/kwok")
	if err != nil {
		return "", err
	}
	for _, parent := range []string{kwok, Root()} {
		if _, err := c.Kubectl(ctx, "apply", "-k", filepath.Join(parent, "kustomize", "rbac")); err != nil {
			return "", err
		}
	}
	return Kubeconfig(ctx, c, serviceAccountNamespace, serviceAccount)
}

// Kubeconfig writes a kubeconfig with a token of a ServiceAccount into the directory of a
// cluster.
func Kubeconfig(ctx context.Context, c *cluster.Cluster, namespace, account string) (string, error) {
	path := filepath.Join(filepath.Dir(c.Kubeconfig()), account+".kubeconfig.yaml")
	token, err := c.Kubectl(ctx, "-n", namespace, "create", "token", account, "--duration=8760h")
	if err != nil {
		return "", err
	}
	flattened, err := c.Kubectl(ctx, "config", "view", "--minify", "--flatten", "--raw")
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(path, []byte(flattened), 0o600); err != nil {
		return "", fmt.Errorf("write kubeconfig of the ServiceAccount: %w", err)
	}
	for _, change := range [][]string{
		{"config", "set-credentials", account, "--token", token},
		{"config", "set-context", "--current", "--user", account},
	} {
		if _, err := c.Kubectl(ctx, append([]string{"--kubeconfig", path}, change...)...); err != nil {
			return "", fmt.Errorf("make kubeconfig of the ServiceAccount: %w", err)
		}
	}
	return path, nil
}

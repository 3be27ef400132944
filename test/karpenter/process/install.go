package process

import (
	"bytes"
	"context"
	"fmt"

	kwokapis "sigs.k8s.io/karpenter/kwok/apis"
	"sigs.k8s.io/karpenter/pkg/apis"

	"github.com/kwok-dra/kwok-dra/test/cluster"
)

// install applies the custom resource definitions of Karpenter and of its KWOK
// provider.
func install(ctx context.Context, c *cluster.Cluster) error {
	documents := bytes.Join([][]byte{
		apis.NodePoolCRD, apis.NodeClaimCRD, apis.NodeOverlayCRD, apis.CapacityBufferCRD, kwokapis.KWOKNodeClassCRD,
	}, []byte("\n---\n"))
	if _, err := c.KubectlInput(ctx, bytes.NewReader(documents), "apply", "--server-side", "-f", "-"); err != nil {
		return fmt.Errorf("install Karpenter: %w", err)
	}
	_, err := c.KubectlInput(ctx, bytes.NewReader(documents), "wait", "--for=condition=Established", "--timeout=60s", "-f", "-")
	if err != nil {
		return fmt.Errorf("install Karpenter: %w", err)
	}
	return nil
}

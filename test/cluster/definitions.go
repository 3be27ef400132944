package cluster

import (
	"context"
	"time"
)

const (
	// definitionsLimit bounds the wait for definitions of custom resources.
	definitionsLimit = 2 * time.Minute
	definitionsRetry = 100 * time.Millisecond
)

// AwaitDefinitions waits until all definitions of custom resources are established.
func (c *Cluster) AwaitDefinitions(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, definitionsLimit)
	defer cancel()
	for {
		// It fails at once for a definition that has no conditions yet.
		_, err := c.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s", "customresourcedefinitions", "--all")
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(definitionsRetry):
		}
	}
}

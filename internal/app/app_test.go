package app

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

// TestTellUnreachable: who waits for an API server that is not there is told so.
func TestTellUnreachable(t *testing.T) {
	t.Parallel()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://127.0.0.1:1"}) // nothing listens there
	require.NoError(t, err)
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logger))
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		(&sidecar{Core: Core{Cluster: Cluster{Client: client}}}).logUntilReachable(ctx)
	}()
	log := logger.GetSink().(ktesting.Underlier).GetBuffer()
	require.Eventually(t, func() bool { return log.String() != "" }, time.Minute, 10*time.Millisecond)
	cancel()
	<-stopped
	require.Contains(t, log.String(), `The API server does not answer err="Get \"http://127.0.0.1:1/version\": dial tcp 127.0.0.1:1: connect: connection refused"`)
}

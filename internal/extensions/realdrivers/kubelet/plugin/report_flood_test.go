package plugin

import (
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	healthv1alpha1 "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"
)

// TestFloodOfReports: a plugin that reports all the time is read now and then.
func TestFloodOfReports(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, _, _ := w.plugin("a", drav1.DRAPluginService, healthv1alpha1.DRAResourceHealthService)
	report := &healthv1alpha1.NodeWatchResourcesResponse{}
	for i := range 2000 { // few of them fit into what gRPC buffers
		report.Devices = append(report.Devices, &healthv1alpha1.DeviceHealth{Device: &healthv1alpha1.DeviceIdentifier{PoolName: "pool", DeviceName: "device-" + strconv.Itoa(i)}})
	}
	f.health <- report
	read := 0
	for end := time.After(3 * time.Second); ; read++ {
		select {
		case <-end:
			require.Less(t, read, reportBurst+3*reportsPerSecond+20)
			return
		case f.health <- report:
		}
	}
}

// TestLongFailures: a plugin that says megabytes of each failure fills neither the memory nor the log.
func TestLongFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, _, _ := w.plugin("a", drav1.DRAPluginService)
	f.mu.Lock()
	f.failure = strings.Repeat("\u00e9", 100_000)
	f.mu.Unlock()
	w.eventually("connected", func() bool { return w.Connected("driver") })
	p, err := w.Get("driver")
	require.NoError(t, err)
	claims := []*drav1.Claim{{Uid: "1"}}
	response, err := p.Prepare(t.Context(), claims)
	require.NoError(t, err)
	kept := response.GetClaims()["1"].GetError()
	require.LessOrEqual(t, len(kept), maxFailureLength)
	require.True(t, utf8.ValidString(kept))
	_, err = p.Unprepare(t.Context(), claims)
	require.ErrorContains(t, err, "busy\u00e9")
	require.Less(t, len(err.Error()), maxFailureLength+100)
}

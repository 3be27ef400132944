package kubelet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/extensions/devicehealth"
	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/claiminfo"
	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/plugin"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
)

var errBusy = errors.New("busy")

// newDriver answers for a Pod on a node without plugins. The driver template.example.com has a
// template.
func newDriver(t *testing.T) *Driver {
	t.Helper()
	claims, err := claiminfo.Open(filepath.Join(t.TempDir(), claiminfo.File))
	require.NoError(t, err)
	return &Driver{
		node: &node{claims: claims, plugins: plugin.NewSet(plugin.Options{})}, pod: claimstest.NewPod("p"),
		hasTemplates: func(driver string) bool { return driver == "template.example.com" },
	}
}

// claimOf is a claim with a device of each driver.
func claimOf(results ...resourcev1.DeviceRequestAllocationResult) *resourcev1.ResourceClaim {
	claim := claimstest.Allocated("c")
	claimstest.Allocate(claim, results...)
	return claim
}

// TestDriversOf: the kubelet asks each real driver of a claim once, and none whose devices need no
// preparing.
func TestDriversOf(t *testing.T) {
	t.Parallel()
	skips := claimstest.Device("skips.example.com", "x")
	skips.SkipNodeOperations = []resourcev1.SkipNodeOperation{resourcev1.SkipNodeOperationAll}
	both := claimstest.Device("real.example.com", "y")
	both.SkipNodeOperations = skips.SkipNodeOperations
	claim := claimOf(claimstest.Device("real.example.com", "x"), both, claimstest.Device("template.example.com", "x"), skips)
	d := newDriver(t)
	require.Equal(t, map[string]claiminfo.DriverState{"real.example.com": {}}, d.realDriversOf(claim))
	answer, err := d.Prepare([]*resourcev1.ResourceClaim{claimOf(skips), claimOf(claimstest.Device("template.example.com", "x"))})
	require.NoError(t, err)
	require.Equal(t, plan.Answered, answer)
}

// TestPrepareAnswers: what is asked, and what is not, while a call runs, after it, and while Stages
// have the plugin not answer.
func TestPrepareAnswers(t *testing.T) {
	t.Parallel()
	claims := []*resourcev1.ResourceClaim{claimOf(claimstest.Device("real.example.com", "x"))}
	prepare := func(change func(*Driver)) (plan.Answer, error) {
		d := newDriver(t)
		change(d)
		return d.Prepare(claims)
	}
	answer, err := prepare(func(*Driver) {})
	require.NoError(t, err)
	require.Equal(t, plan.NotAsked, answer)
	answer, err = prepare(func(d *Driver) { d.last.isRunning = true })
	require.NoError(t, err)
	require.Equal(t, plan.Outstanding, answer)
	_, err = prepare(func(d *Driver) { d.last.err = errBusy })
	require.ErrorIs(t, err, errBusy)
	_, err = prepare(func(d *Driver) { d.state = lifecycle.PluginSilent })
	require.ErrorContains(t, err, "NodePrepareResources: rpc error: code = Unavailable")
	_, err = prepare(func(d *Driver) { d.node = nil })
	require.NoError(t, err)
}

// TestDriverConsumesNothing: each look at the drivers of a Pod has the same answer, until it is reported.
func TestDriverConsumesNothing(t *testing.T) {
	const pod = types.UID("p")
	for name, answer := range map[string]error{
		"an error":            fmt.Errorf("ask: %w", errBusy),
		"a failure inside it": errors.Join(plan.NotRegistered("real.example.com")),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, claimstest.NewNode("n"))
				w.start(w.directory)
				fake, n := claimstest.NewNode("n"), w.kubelets.runningNode("n")
				joined := claiminfo.Claim{ResourceClaim: claimOf(claimstest.Device("real.example.com", "x")), Drivers: map[string]claiminfo.DriverState{"real.example.com": {}}}
				p := claimstest.NewPod("p")
				p.UID = pod
				_, err := n.claims.Join(pod, []claiminfo.Claim{joined})
				require.NoError(t, err)
				n.calls.beginCall(pod, &call{isUnprepare: true}, func(context.Context) error { return answer }, func() {})
				synctest.Wait()
				unprepare := func() error {
					_, err := w.kubelets.Driver(p, fake, func(string) bool { return false }).Unprepare(nil)
					return err
				}
				require.Equal(t, answer, unprepare())
				require.Equal(t, answer, unprepare(), "a look consumes nothing")
				w.kubelets.Acknowledge(p, fake, errors.New("another failure"))
				require.Equal(t, answer, unprepare())
				reported := &plan.Failure{Reason: plan.ReasonDriver, Err: answer}
				if inside, ok := errors.AsType[*plan.Failure](answer); ok {
					reported = inside
				}
				w.kubelets.Acknowledge(p, fake, reported)
				require.NoError(t, unprepare(), "the driver is asked again")
			})
		})
	}
}

// TestUnprepareAnswers: a Pod is unprepared when the checkpoint is read and has nothing of it.
func TestUnprepareAnswers(t *testing.T) {
	t.Parallel()
	claim := claimOf(claimstest.Device("real.example.com", "x"))
	for name, test := range map[string]struct {
		change func(*Driver)
		joined bool
		want   plan.Answer
		err    error
	}{
		"nothing":                {func(*Driver) {}, false, plan.Answered, nil},
		"prepared":               {func(*Driver) {}, true, plan.NotAsked, nil},
		"being prepared":         {func(d *Driver) { d.last = call{isRunning: true} }, true, plan.NotAsked, nil},
		"being unprepared":       {func(d *Driver) { d.last = call{isRunning: true, isUnprepare: true} }, true, plan.Outstanding, nil},
		"failed":                 {func(d *Driver) { d.last = call{isUnprepare: true, err: errBusy} }, true, plan.NotAsked, errBusy},
		"no folder here":         {func(d *Driver) { d.node = nil }, false, plan.Answered, nil},
		"folder is not read yet": {func(d *Driver) { d.node, d.isUnread = nil, true }, false, plan.Outstanding, nil},
	} {
		d := newDriver(t)
		if test.joined {
			_, err := d.node.claims.Join(d.pod.UID, []claiminfo.Claim{{ResourceClaim: claim, Drivers: map[string]claiminfo.DriverState{"real.example.com": {}}}})
			require.NoError(t, err)
		}
		test.change(d)
		answer, err := d.Unprepare(nil)
		require.Equal(t, test.err, err, name)
		require.Equal(t, test.want, answer, name)
	}
}

// TestHealthOfDevice: a device is known by its first CDI id, and its health only as long as a plugin
// reports it.
func TestHealthOfDevice(t *testing.T) {
	t.Parallel()
	result := claimstest.Device("real.example.com", "x")
	claim := claimOf(result)
	d := newDriver(t)
	health, err := d.Health(d.pod, claim, &result)
	require.NoError(t, err)
	require.Nil(t, health, "nothing is prepared")

	joined := claiminfo.Claim{ResourceClaim: claim, Drivers: map[string]claiminfo.DriverState{"real.example.com": {}}}
	_, err = d.node.claims.Join(d.pod.UID, []claiminfo.Claim{joined})
	require.NoError(t, err)
	for _, test := range []struct {
		device claiminfo.Device
		want   string
	}{
		{claiminfo.Device{PoolName: result.Pool, DeviceName: "x", CDIDeviceIDs: []string{"a/b=c", "a/b=d"}}, "a/b=c"},
		{claiminfo.Device{PoolName: result.Pool, DeviceName: "x", RequestNames: []string{result.Request}}, "real.example.com/" + result.Pool + "/x"},
		{claiminfo.Device{PoolName: result.Pool, DeviceName: "x", RequestNames: []string{"other"}}, ""},
		{claiminfo.Device{PoolName: result.Pool, DeviceName: "x", ShareID: new(types.UID("share"))}, ""},
		{claiminfo.Device{PoolName: result.Pool, DeviceName: "y"}, ""},
	} {
		require.NoError(t, d.node.claims.SetDevices(joined, "real.example.com", []claiminfo.Device{test.device}))
		health, err := d.Health(d.pod, claim, &result)
		require.NoError(t, err)
		if test.want == "" {
			require.Nil(t, health)
			continue
		}
		require.Equal(t, devicehealth.Health{ResourceHealth: corev1.ResourceHealth{ResourceID: corev1.ResourceID(test.want), Health: corev1.ResourceHealthStatusUnknown}}, *health)
	}
}

// TestShownHealthIsWithdrawn: health that a Pod shows becomes unknown when the plugin that has reported it is gone.
func TestShownHealthIsWithdrawn(t *testing.T) {
	t.Parallel()
	result := claimstest.Device("real.example.com", "x")
	claim, d := claimOf(result), newDriver(t)
	joined := claiminfo.Claim{ResourceClaim: claim, Drivers: map[string]claiminfo.DriverState{"real.example.com": {}}}
	_, err := d.node.claims.Join(d.pod.UID, []claiminfo.Claim{joined})
	require.NoError(t, err)
	require.NoError(t, d.node.claims.SetDevices(joined, "real.example.com", []claiminfo.Device{{PoolName: result.Pool, DeviceName: "x", CDIDeviceIDs: []string{"a/b=c"}}}))
	for shown, want := range map[corev1.ResourceID]bool{"a/b=c": true, "a/b=other": false} {
		d.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{AllocatedResourcesStatus: []corev1.ResourceStatus{{
			Name: "claim:c", Resources: []corev1.ResourceHealth{{ResourceID: shown, Health: corev1.ResourceHealthStatusHealthy}},
		}}}}
		require.True(t, d.ReportsHealth())
		health, err := d.Health(d.pod, claim, &result)
		require.NoError(t, err)
		require.Equal(t, want, health.Reported, shown)
		require.Equal(t, corev1.ResourceHealthStatusUnknown, health.Health)
	}
	d.pod.Status.ContainerStatuses = nil
	require.False(t, d.ReportsHealth())
}

// TestUnprepareWhilePluginIsAway: a driver is not called whose plugin is away by what Stages say, though its socket is there.
func TestUnprepareWhilePluginIsAway(t *testing.T) {
	t.Parallel()
	for state, want := range map[lifecycle.Plugin]string{
		lifecycle.PluginSilent: "NodeUnprepareResources: rpc error: code = Unavailable",
		lifecycle.PluginGone:   "DRA driver real.example.com is not registered",
	} {
		n := newDriver(t).node
		n.stages.plugin = state
		n.calls = &calls{node: n, ctx: t.Context(), byPod: map[types.UID]*call{}}
		claim := claiminfo.Claim{ResourceClaim: claimOf(claimstest.Device("real.example.com", "x")), Drivers: map[string]claiminfo.DriverState{"real.example.com": {}}}
		_, err := n.claims.Join("p", []claiminfo.Claim{claim})
		require.NoError(t, err)
		require.ErrorContains(t, n.calls.unprepareClaims(t.Context(), "p", nil), want)
		require.True(t, n.claims.Pods().Has("p"), "until the driver is back")
	}
}

// TestSkippedOperations: a driver is not asked for what none of its devices needs, and for the rest it is.
func TestSkippedOperations(t *testing.T) {
	t.Parallel()
	const missing = "DRA driver real.example.com is not registered"
	for _, test := range []struct {
		skipped            []resourcev1.SkipNodeOperation
		prepare, unprepare string
	}{
		{nil, missing, missing},
		{[]resourcev1.SkipNodeOperation{resourcev1.SkipNodeOperationNodePrepareResources}, "", missing},
		{[]resourcev1.SkipNodeOperation{resourcev1.SkipNodeOperationNodeUnprepareResources}, missing, ""},
	} {
		device := claimstest.Device("real.example.com", "x")
		device.SkipNodeOperations = test.skipped
		d := newDriver(t)
		calls := &calls{node: d.node, ctx: t.Context(), byPod: map[types.UID]*call{}}
		claims := d.unpreparedClaims([]*resourcev1.ResourceClaim{claimOf(device)})
		d.state = lifecycle.PluginSilent
		answer, err := d.Prepare([]*resourcev1.ResourceClaim{claimOf(device)})
		require.Equal(t, test.prepare == "", err == nil, "%v: %v", test.skipped, err)
		require.Equal(t, test.prepare == "", answer == plan.NotAsked, "%v: the claim is recorded", test.skipped)
		requireError(t, test.prepare, calls.prepareClaims(t.Context(), "p", claims))
		requireError(t, test.unprepare, calls.unprepareClaims(t.Context(), "p", nil))
		require.Equal(t, test.unprepare != "", d.node.claims.Pods().Has("p"), test.skipped)
	}
}

// requireError requires an error with the text, or none if the text is empty.
func requireError(t *testing.T, want string, err error) {
	t.Helper()
	if want == "" {
		require.NoError(t, err)
		return
	}
	require.ErrorContains(t, err, want)
}

package drivers

import (
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// TestKubeletSpecs: the specs of DRA that Kubernetes has for a kubelet hold for kwok-dra. They are in
// the order and have the names of test/e2e_node/dra_test.go. Those for which kwok-dra itself restarts
// are in TestKubeletRestarts.
func TestKubeletSpecs(t *testing.T) {
	t.Parallel()
	s := newGeneralScene(t, harness.AllFeatures(cluster.Options{}))
	together(s, map[string]func(*scene){
		"MustRegisterAfterKubeletRestart":                                         mustRegisterAfterKubeletRestart,
		"MustRegisterAfterPluginRestart":                                          mustRegisterAfterPluginRestart,
		"MustRecoverAndRegisterAfterRegistrationFailure":                          mustRecoverAfterRegistrationFailure,
		"MustRecoverAndRegisterAfterNotifyRegistrationStatusFailure":              mustRecoverAfterNotifyFailure,
		"MustKeepPodInPendingStateIfNodePrepareResourcesTimesOut":                 mustKeepPodPending,
		"MustRunPodIfNodePrepareResourcesFailsAndThenSucceeds":                    mustRunPodAfterPrepareFails,
		"MustRunPodIfNodeUnprepareResourcesFailsAndThenSucceeds":                  mustRunPodAfterUnprepareFails,
		"MustCallNodeUnprepareResourcesForDeletedPod":                             mustUnprepareForDeletedPod,
		"MustBeFunctionalWhenPluginStartsToListenAfterRegistration":               each(mustBeFunctionalWhenListeningLater),
		"MustBeFunctionalAfterServiceReconnect":                                   each(mustBeFunctionalAfterReconnect),
		"MustUseOneConnectionForAllServiceCalls":                                  mustUseOneConnection,
		"TwoPluginsMustPrepareAndUnprepareResources":                              twoPluginsMustPrepare,
		"TwoPluginsMustProvideMetrics":                                            twoPluginsMustProvideMetrics,
		"MustRunPodIfNodePrepareResourcesFailsForOnePluginAndThenSucceeds":        mustRunPodAfterOnePrepareFails,
		"MustRunPodIfNodeUnprepareResourcesFailsForOnePluginAndThenSucceeds":      mustRunPodAfterOneUnprepareFails,
		"ResourceSliceMustBeRemovedOnKubeletStartup":                              slicesMustBeRemovedOnStartup,
		"ResourceSliceMustBeRemovedAfterPluginUnregistration":                     slicesMustBeRemovedAfterUnregistration,
		"ResourceSliceMustBeRemovedIfPluginStopsAfterRegistration":                each(slicesMustBeRemovedIfPluginStops),
		"ResourceSliceMustBeRemovedIfPluginIsUnresponsiveAfterRegistration":       slicesMustBeRemovedIfUnresponsive,
		"ResourceSliceMustNotBeRemovedIfPluginRestartsQuicklyEnough":              each(slicesMustNotBeRemoved),
		"HealthShouldReflectDeviceHealthChangesInThePodsStatus":                   shouldReflectHealth,
		"HealthMustReuseOneConnectionForServiceAndHealthMonitoringCalls":          mustReuseOneConnection,
		"HealthShouldUpdateToUnknownWhenPluginStopsAndRecoverUponRestart":         shouldUpdateToUnknown,
		"HealthShouldAutomaticallyReconnectBothAPIsAfterConnectionDrop":           shouldReconnect,
		"HealthShouldHandleConcurrentOperationsAndMonitoring":                     shouldHandleConcurrentOperations,
		"HealthShouldReflectDeviceHealthChangesForDevicesWithShareID":             shouldReflectHealthOfShares,
		"ShareIDMustBeFunctionalWithTheSpecifiedAllocationResultsWithoutShareID":  mustBeFunctionalWithoutShareID,
		"ShareIDMustBeFunctionalWithTheSpecifiedAllocationResultsWithTwoShareIDs": mustBeFunctionalWithTwoShareIDs,
	})
}

// together runs tests as subtests at the same time. They are goroutines since t.Parallel runs only as many as
// there are CPUs, and these tests mostly wait.
func together(s *scene, tests map[string]func(*scene)) {
	var running sync.WaitGroup
	for name, test := range tests {
		running.Go(func() {
			s.Run(name, func(t *testing.T) { test(s.on(t)) })
		})
	}
	running.Wait()
}

// restartKubelet has Stages restart the kubelet of a node, and waits until it has happened.
func (s *scene) restartKubelet(node string) {
	s.Helper()
	s.Label(node, "node-kubelet-restart.stage.kwok.x-k8s.io", "true")
	s.NodeCondition(node, "dra.kwok.x-k8s.io/KubeletRestarted", corev1.ConditionTrue)
}

package main

import (
	"fmt"
	"maps"
	"slices"
)

// lifetime are the minor versions of Kubernetes, from the first to the last, that have a
// feature gate or a version of an API. No last one means that it has not ended.
type lifetime struct{ first, last int }

// lifetimes are those of what suites switch on and not all supported versions have: an API
// server does not start with a switch that it does not know.
var lifetimes = map[string]lifetime{
	"DRADeviceCompatibilityGroups": {first: 37},
	"DRADeviceTaintRules":          {first: 35},
	"DRANodeAllocatableResources":  {first: 36},
	"DRAOptionalNodeOperations":    {first: 37},
	"DRAPartitionableDevicesType":  {first: 37},
	"DRAResourcePoolStatus":        {first: 36},
	"DRAWorkloadResourceClaims":    {first: 36},
	"GangScheduling":               {first: 35, last: 36},
	"GenericWorkload":              {first: 35},
	"scheduling.k8s.io/v1alpha2":   {first: 36, last: 36},
	"scheduling.k8s.io/v1beta1":    {first: 37}, // without it the scheduler of GenericWorkload waits for PodGroups
}

func (l lifetime) has(minor int) bool { return l.first <= minor && (l.last == 0 || minor <= l.last) }

// on is the suite on a version of Kubernetes: without the switches that this does not know,
// and without the specs that it cannot run.
func (s suite) on(version string) suite {
	minor := 0
	_, _ = fmt.Sscanf(version, "v1.%d.", &minor)
	s.cluster.KubernetesVersion = version
	s.cluster.FeatureGates = known(s.cluster.FeatureGates, minor)
	s.cluster.RuntimeConfig = known(s.cluster.RuntimeConfig, minor)
	s.leftOut = slices.Clone(s.leftOut)
	for _, since := range slices.Sorted(maps.Keys(s.leftOutSince)) {
		if since <= minor {
			s.leftOut = append(s.leftOut, s.leftOutSince[since]...)
		}
	}
	if s.tests.Module.Path == kubernetesModule {
		s.tests.Module.Version = version
	}
	return s
}

// known are the switches that a minor version of Kubernetes has.
func known(switches map[string]bool, minor int) map[string]bool {
	switches = maps.Clone(switches)
	maps.DeleteFunc(switches, func(name string, _ bool) bool {
		lives, ok := lifetimes[name]
		return ok && !lives.has(minor)
	})
	return switches
}

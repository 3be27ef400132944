package main

import (
	"regexp"

	"golang.org/x/mod/module"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/cluster/build"
)

var draExampleDriver = suite{
	name:  "dra-example-driver",
	title: "[dra-example-driver](https://github.com/kubernetes-sigs/dra-example-driver), `test/e2e`",
	tests: build.Tests{
		Module:  module.Version{Path: "sigs.k8s.io/dra-example-driver", Version: "v0.4.0"},
		Package: "sigs.k8s.io/dra-example-driver/test/e2e",
		Tags:    "e2e",
	},
	cluster: cluster.Options{
		FeatureGates: switchOn("DynamicResourceAllocation", "DRAAdminAccess", "DRAWorkloadResourceClaims", "GangScheduling", "GenericWorkload",
			"DRAExtendedResource", "DRADeviceBindingConditions", "DRANodeAllocatableResources", "DRAConsumableCapacity"),
		RuntimeConfig: switchOn("resource.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha2", "scheduling.k8s.io/v1beta1"),
	},
	containerView: true,
	leftOut: []leftOut{
		{regexp.MustCompile("Webhooks"), "they need cert-manager, and a webhook server that runs"},
		{regexp.MustCompile("native CPU resources"), "it reads nodeAllocatableResourceMappings, an alpha field that Kubernetes 1.36 alone has"},
	},
	leftOutSince: map[int][]leftOut{37: {{
		regexp.MustCompile("2 PodGroups"),
		"its example has PodGroups of scheduling.k8s.io/v1alpha2, which Kubernetes 1.36 alone serves",
	}}},
}

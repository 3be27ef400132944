package main

import (
	"fmt"
	"strings"

	"golang.org/x/mod/module"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/cluster/build"
)

// A suite is a suite of tests of another project, and what it needs.
type suite struct {
	name string
	// tests are what is built and run, from the module as it was released.
	tests build.Tests
	// cluster says what cluster the project itself tests on.
	cluster cluster.Options
	// sidecar are more arguments of kwok-dra.
	sidecar []string
	// leftOut matches the specs that are not run, and because says why.
	leftOut, because string
}

// suites are all, in the order in which they run. The folder manifests has a folder of
// nodes and templates for each.
var suites = []suite{
	{
		name: "dra-example-driver",
		tests: build.Tests{
			Module:  module.Version{Path: "sigs.k8s.io/dra-example-driver", Version: "v0.4.0"},
			Package: "sigs.k8s.io/dra-example-driver/test/e2e",
			Tags:    "e2e",
		},
		cluster: cluster.Options{
			FeatureGates: switchOn("DynamicResourceAllocation", "DRAAdminAccess", "DRAWorkloadResourceClaims", "GangScheduling", "GenericWorkload",
				"DRAExtendedResource", "DRADeviceBindingConditions", "DRANodeAllocatableResources", "DRAConsumableCapacity"),
			RuntimeConfig: switchOn("resource.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha2"),
		},
		leftOut: "Webhooks",
		because: "needs cert-manager and a webhook server that runs",
	},
}

func switchOn(names ...string) map[string]bool {
	on := map[string]bool{}
	for _, name := range names {
		on[name] = true
	}
	return on
}

func names() []string {
	var all []string
	for _, s := range suites {
		all = append(all, s.name)
	}
	return all
}

// choose finds a suite by its name, or all where it is empty.
func choose(name string) ([]suite, error) {
	if name == "" {
		return suites, nil
	}
	for _, s := range suites {
		if s.name == name {
			return []suite{s}, nil
		}
	}
	return nil, fmt.Errorf("find suite %q: want one of %s", name, strings.Join(names(), ", "))
}

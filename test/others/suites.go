package main

import (
	"fmt"
	"regexp"
	"strings"

	"golang.org/x/mod/module"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/cluster/build"
	"github.com/kwok-dra/kwok-dra/test/others/report"
)

// A suite is a suite of tests of another project, and what it needs.
type suite struct {
	name string
	// tests are what is built and run, from the module as it was released.
	tests build.Tests
	// cluster says what cluster the project itself tests on.
	cluster cluster.Options
	// containerView says that the suite reads logs of containers, which then show what the
	// containers see of their devices.
	containerView bool
	leftOut       []leftOut
}

// leftOut says why specs are not run.
type leftOut struct {
	specs   *regexp.Regexp
	because string
}

// suites are all, in the order in which they run. The folder manifests has a
// kustomization of nodes and templates for each.
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
		containerView: true,
		leftOut: []leftOut{
			{regexp.MustCompile("Webhooks"), "they need cert-manager, and a webhook server that runs"},
			{regexp.MustCompile("native CPU resources"), "it reads nodeAllocatableResourceMappings, an alpha field that Kubernetes 1.36 alone has"},
		},
	},
}

func switchOn(names ...string) map[string]bool {
	on := map[string]bool{}
	for _, name := range names {
		on[name] = true
	}
	return on
}

// without matches all that is left out of a suite.
func (s *suite) without() string {
	var all []string
	for _, left := range s.leftOut {
		all = append(all, left.specs.String())
	}
	return strings.Join(all, "|")
}

// explain says of specs that are left out why.
func (s *suite) explain(specs []report.Spec) {
	for i := range specs {
		for _, left := range s.leftOut {
			if specs[i].Result == report.LeftOut && left.specs.MatchString(specs[i].Name) {
				specs[i].Message = left.because
			}
		}
	}
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

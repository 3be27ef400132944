package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/others/report"
)

func TestChoose(t *testing.T) {
	t.Parallel()
	all, err := choose("")
	require.NoError(t, err)
	require.Len(t, all, len(suites))
	one, err := choose(suites[0].name)
	require.NoError(t, err)
	require.Equal(t, suites[0].tests, one[0].tests)
	some, err := choose("kueue")
	require.NoError(t, err)
	require.Len(t, some, 4)
	_, err = choose("kue")
	require.ErrorContains(t, err, `find suite "kue": want one of dra-example-driver, `)
}

func TestExplain(t *testing.T) {
	t.Parallel()
	const webhook, cpu = "Test GPU allocation Webhooks should reject", "Test GPU allocation should account for native CPU resources"
	specs := []report.Spec{
		{Name: webhook, Result: report.LeftOut},
		{Name: cpu, Result: report.LeftOut},
		{Name: webhook, Result: report.Failed, Message: "said"},
		{Name: "other", Result: report.LeftOut},
	}
	suites[0].explain(specs)
	require.Contains(t, specs[0].Message, "cert-manager")
	require.Contains(t, specs[1].Message, "nodeAllocatableResourceMappings")
	require.Equal(t, "said", specs[2].Message)
	require.Empty(t, specs[3].Message)
	require.Equal(t, "Webhooks|native CPU resources", suites[0].without())
}

func TestChoice(t *testing.T) {
	t.Parallel()
	require.Empty(t, (&suite{}).choice(""), "an empty expression would match all names")
	chosen, err := choose("kai-preempt")
	require.NoError(t, err)
	kai := &chosen[0]
	require.ElementsMatch(t, []string{"-ginkgo.focus=" + kai.specs.String(), "-ginkgo.skip=preempts an extended-resource pod"}, kai.choice(""))
	require.Contains(t, kai.choice("by name"), "-ginkgo.focus=by name")
	const own, other = "preempt Distributed Jobs - DRA claims should preempt jobs", "Priority Preemption of device plugins"
	require.False(t, kai.foreign(report.Spec{Name: own, Result: report.LeftOut}))
	require.True(t, kai.foreign(report.Spec{Name: other, Result: report.LeftOut}))
	require.False(t, kai.foreign(report.Spec{Name: other, Result: report.Failed}), "what fails is always told")
}

// TestTitles: each suite has a title for the table of what works, and no two have the same.
func TestTitles(t *testing.T) {
	t.Parallel()
	titles := map[string]string{}
	for _, s := range suites {
		require.NotEmpty(t, s.title, s.name)
		require.Empty(t, titles[s.title], s.name)
		titles[s.title] = s.name
	}
}

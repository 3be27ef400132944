package plan

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
)

// TestReplace: a manager replaces what it has written, and nothing of others: foreign
// entries, what is another's in an entry of its own, and other shares of a device.
func TestReplace(t *testing.T) {
	t.Parallel()
	type entries = []resourcev1.AllocatedDeviceStatus
	entry := func(device, data string, conditions ...string) resourcev1.AllocatedDeviceStatus {
		entry := resourcev1.AllocatedDeviceStatus{Driver: "d", Pool: "n", Device: device}
		if data != "" {
			entry.Data = &runtime.RawExtension{Raw: []byte(data)}
			entry.NetworkData = &resourcev1.NetworkDeviceData{InterfaceName: data}
		}
		for _, condition := range conditions {
			entry.Conditions = append(entry.Conditions, metav1.Condition{Type: condition})
		}
		return entry
	}
	share := func(entry resourcev1.AllocatedDeviceStatus) resourcev1.AllocatedDeviceStatus {
		entry.ShareID = new("s")
		return entry
	}
	for name, test := range map[string]struct {
		manager            string
		have, write, wants entries
	}{
		"first":         {facts.Manager, nil, entries{entry("a", "1", "Ready")}, entries{entry("a", "1", "Ready")}},
		"again":         {facts.Manager, entries{entry("ours", "1", "Ready", "Old")}, entries{entry("ours", "2", "Ready")}, entries{entry("ours", "2", "Ready")}},
		"less":          {facts.Manager, entries{entry("ours", "1", "Ready", "Old")}, entries{entry("ours", "", "Ready")}, entries{entry("ours", "", "Ready")}},
		"withdraw":      {facts.Manager, entries{entry("ours", "1", "Ready"), entry("foreign", "1", "Ready")}, nil, entries{entry("foreign", "1", "Ready")}},
		"bound":         {facts.Manager, entries{entry("ours", "1", "Ready", "Attached")}, nil, entries{entry("ours", "", "Attached")}},
		"bind":          {facts.BindingManager, entries{entry("ours", "1", "Ready", "Failed")}, entries{entry("ours", "", "Attached")}, entries{entry("ours", "1", "Ready", "Attached")}},
		"unbind":        {facts.BindingManager, entries{entry("ours", "", "Attached", "Failed")}, nil, entries{}},
		"foreign":       {facts.Manager, entries{entry("foreign", "1", "Ready", "Other")}, entries{entry("foreign", "2", "Ready")}, entries{entry("foreign", "2", "Other", "Ready")}},
		"another share": {facts.Manager, entries{share(entry("ours", "1")), entry("ours", "1")}, nil, entries{share(entry("ours", "1"))}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := claimstest.Allocated("c")
			result := claimstest.Device("d", "ours")
			result.BindingConditions, result.BindingFailureConditions = []string{"Attached"}, []string{"Failed"}
			claimstest.Allocate(claim, result)
			claim.Status.Devices = test.have
			claim.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: test.manager, Subresource: "status", FieldsV1: metav1.NewFieldsV1(
				`{"f:status":{"f:devices":{".":{},"k:{\"device\":\"ours\",\"driver\":\"d\",\"pool\":\"n\"}":{".":{}}}}}`)}}
			(&ClaimWrite{Manager: test.manager, Entries: test.write}).Replace(claim)
			require.Equal(t, test.wants, claim.Status.Devices)
		})
	}
}

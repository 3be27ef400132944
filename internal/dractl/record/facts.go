package record

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// prepared is a device of a claim that a driver has prepared.
type prepared struct {
	node   *corev1.Node
	claim  *resourcev1.ResourceClaim
	result *resourcev1.DeviceRequestAllocationResult
	device *resourcev1.Device
	// entry is what the driver has written to the claim, or nil.
	entry *resourcev1.AllocatedDeviceStatus
	// ids are the CDI devices that the driver has returned, and edits what they are.
	ids   []string
	edits []any
}

// fact is something that a template of claimStatus can read.
type fact struct {
	// key is the name of the field, and expression how a template reads it.
	key, expression string
	value           string
}

// telling are facts that are common words. A value stands for one of them only if it differs between devices
// as the fact does.
var telling = sets.New(".Claim.namespace", ".Result.request")

// listFacts returns the facts of a device. Of facts with the same value, templates use the first.
func (p *prepared) listFacts() []fact {
	all := []fact{
		{"uid", ".Claim.uid", string(p.claim.UID)},
		{"device", ".Device.name", p.device.Name},
		{"node", ".Node.metadata.name", p.node.Name},
		{"nodeUID", ".Node.metadata.uid", string(p.node.UID)},
		{"claim", ".Claim.name", p.claim.Name},
		{"namespace", ".Claim.namespace", p.claim.Namespace},
		{"pool", ".Result.pool", p.result.Pool},
		{"request", ".Result.request", p.result.Request},
	}
	if users := p.claim.Status.ReservedFor; len(users) == 1 && users[0].Resource == "pods" {
		all = append(all, fact{"pod", "(index .Pods 0).name", users[0].Name}, fact{"podUID", "(index .Pods 0).uid", string(users[0].UID)})
	}
	if p.result.ShareID != nil {
		all = append(all, fact{"shareID", ".Result.shareID", string(*p.result.ShareID)})
	}
	for _, name := range slices.Sorted(maps.Keys(p.device.Attributes)) {
		if field, value := attributeValue(p.device.Attributes[name]); field != "" {
			read := ".Device.attributes." + string(name)
			if strings.Contains(string(name), "/") {
				read = fmt.Sprintf("(index .Device.attributes `%s`)", name)
			}
			all = append(all, fact{string(name), read + "." + field, value})
		}
	}
	return all
}

// attributeValue is the field of an attribute that has its value. Lists have none.
func attributeValue(a resourcev1.DeviceAttribute) (field, value string) {
	switch {
	case a.StringValue != nil:
		return "string", *a.StringValue
	case a.IntValue != nil:
		return "int", strconv.FormatInt(*a.IntValue, 10)
	case a.BoolValue != nil:
		return "bool", strconv.FormatBool(*a.BoolValue)
	case a.VersionValue != nil:
		return "version", *a.VersionValue
	}
	return "", ""
}

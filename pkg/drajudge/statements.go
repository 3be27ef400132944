package drajudge

import (
	"fmt"
	"slices"
)

// Level says how binding a statement is.
type Level string

const (
	// Must is for what the API promises: whoever breaks it has a bug.
	Must Level = "must"
	// Should is for what upstream does and users expect, though the API does not promise it.
	Should Level = "should"
)

// Statement is a rule that a history keeps or violates.
type Statement struct {
	// ID is stable: programs use it.
	ID    string `json:"id"`
	Level Level  `json:"level"`
	// Text says what holds.
	Text string `json:"text"`
	// Source is the field of the API, the KEP or the upstream function that says so.
	Source string `json:"source"`
}

// The IDs of statements.
const (
	deviceOnce            = "device-once"
	allocationUnchanged   = "allocation-unchanged"
	reservationLimit      = "reservation-limit"
	reservedWhileUsed     = "reserved-while-used"
	requestAnswered       = "request-answered"
	firstAvailableOne     = "first-available-one"
	allDevices            = "all-devices"
	poolNewest            = "pool-newest"
	poolComplete          = "pool-complete"
	classSelectors        = "class-selectors"
	requestSelectors      = "request-selectors"
	matchAttribute        = "match-attribute"
	distinctAttribute     = "distinct-attribute"
	taintsTolerated       = "taints-tolerated"
	tolerationsCopied     = "tolerations-copied"
	adminNamespace        = "admin-namespace"
	adminRequested        = "admin-requested"
	shareIDs              = "share-ids"
	capacityOffered       = "capacity-offered"
	capacityConsumed      = "capacity-consumed"
	capacityTotal         = "capacity-total"
	countersTotal         = "counters-total"
	conditionsCopied      = "binding-conditions-copied"
	configCopied          = "config-copied"
	nodeSelectorCovers    = "node-selector"
	boundWithClaims       = "bound-with-claims"
	boundToDevices        = "bound-to-devices"
	boundAfterConditions  = "bound-after-conditions"
	claimReleased         = "claim-released"
	reservationReleased   = "reservation-released"
	reservationBound      = "reservation-bound"
	allocationNeeded      = "allocation-needed"
	podPlaced             = "pod-placed"
	podPlaceable          = "pod-placeable"
	preemptedInVain       = "preempted-in-vain"
	deviceQuota           = "device-quota"
	extendedResources     = "extended-resources"
	resultsField          = "ResourceClaim status.allocation.devices.results"
	conditionsCopiedField = resultsField + ".bindingConditions; KEP-5007"
)

// all are the statements in the order in which documents list them.
var all = []Statement{
	{deviceOnce, Must, "A device is allocated once at a time. Only allocations that each have a share ID of their own have it together, and an allocation with admin access has it beside those of other claims.", resultsField + ".shareID and .adminAccess; KEP-4381, KEP-5075"},
	{allocationUnchanged, Must, "An allocation does not change until it is removed.", "ResourceClaim status.allocation"},
	{reservationLimit, Must, "A claim is reserved for at most 256 consumers.", "ResourceClaim status.reservedFor"},
	{reservedWhileUsed, Must, "A claim keeps its allocation and its reservation for a Pod while the Pod is bound and has not ended.", "ResourceClaim status.reservedFor"},
	{requestAnswered, Must, "Each request has as many different devices as it asks for, and each device is for a request of the claim.", "ResourceClaim spec.devices.requests.exactly.count; " + resultsField + ".request"},
	{firstAvailableOne, Must, "A request with firstAvailable gets devices for exactly one of its subrequests.", "ResourceClaim spec.devices.requests.firstAvailable; KEP-4816"},
	{allDevices, Must, "A request for all devices gets all matching devices that the node reaches, at least one, and only while no pool of the node is incomplete.", "ResourceClaim spec.devices.requests.exactly.allocationMode; KEP-4381; structured allocator, validateDeviceRequest"},
	{poolNewest, Must, "An allocated device is in a slice with the highest generation of its pool.", "ResourceSlice spec.pool.generation"},
	{poolComplete, Should, "An allocated device is in a pool that has all slices of its generation, no device name twice, and all counters that its devices consume.", "ResourceSlice spec.pool.resourceSliceCount; structured allocator, GatherPools"},
	{classSelectors, Must, "The class of the request exists, and an allocated device matches its selectors.", "DeviceClass spec.selectors"},
	{requestSelectors, Must, "An allocated device matches the selectors of its request.", "ResourceClaim spec.devices.requests.exactly.selectors"},
	{matchAttribute, Must, "The devices that a matchAttribute constraint covers all have the attribute, with a value in common.", "ResourceClaim spec.devices.constraints.matchAttribute"},
	{distinctAttribute, Must, "The devices that a distinctAttribute constraint covers all have the attribute, and no two have a value in common.", "ResourceClaim spec.devices.constraints.distinctAttribute; KEP-5075"},
	{taintsTolerated, Must, "The request tolerates every NoSchedule and NoExecute taint of its device, from the slice or from a DeviceTaintRule.", "ResourceClaim spec.devices.requests.exactly.tolerations; KEP-5055"},
	{tolerationsCopied, Must, "An allocated device has a copy of the tolerations of its request.", resultsField + ".tolerations"},
	{adminNamespace, Must, "A claim asks for admin access only in a namespace with the label resource.kubernetes.io/admin-access=true.", "ResourceClaim spec.devices.requests.exactly.adminAccess; KEP-5018"},
	{adminRequested, Must, "An allocation has admin access to a device exactly if the request asks for it.", resultsField + ".adminAccess"},
	{deviceQuota, Should, "A claim is made only if the claims of its namespace then keep to the quota of devices of its classes and of their extended resources. A request for all devices counts as 32.", "ResourceQuota status.hard, CLASS.deviceclass.resource.k8s.io/devices and requests.EXTENDED-RESOURCE; KEP-4381, KEP-5004"},
	{shareIDs, Must, "An allocation has a share ID exactly if the device allows multiple allocations.", resultsField + ".shareID; KEP-5075"},
	{capacityOffered, Must, "An allocated device offers every capacity that the request asks for, in an amount that its policy permits.", "ResourceClaim spec.devices.requests.exactly.capacity; ResourceSlice spec.devices.capacity.requestPolicy; KEP-5075"},
	{capacityConsumed, Must, "A share consumes of each capacity what was requested, rounded up by the policy, or else the default.", resultsField + ".consumedCapacity; KEP-5075"},
	{capacityTotal, Must, "The shares of a device together consume no more than its capacity.", resultsField + ".consumedCapacity; KEP-5075"},
	{countersTotal, Must, "The allocated devices of a pool together consume no more of a counter than the pool's newest generation has.", "ResourceSlice spec.sharedCounters and spec.devices.consumesCounters; KEP-4815"},
	{conditionsCopied, Must, "An allocated device has a copy of the binding conditions and the binding failure conditions in its slice.", conditionsCopiedField},
	{configCopied, Must, "An allocation has the configuration of the class and then of the claim for each request.", "ResourceClaim status.allocation.devices.config"},
	{nodeSelectorCovers, Must, "Every node that the allocation's node selector admits reaches all its devices.", "ResourceClaim status.allocation.nodeSelector"},
	{boundWithClaims, Must, "A Pod that has not ended is bound when each of its claims is allocated and reserved for it.", "Pod spec.resourceClaims; ResourceClaim status.reservedFor"},
	{boundToDevices, Must, "A Pod is bound to a node that the node selectors of its claims admit.", "ResourceClaim status.allocation.nodeSelector"},
	{extendedResources, Must, "A Pod is bound when its claim for extended resources asks for devices of their classes, as many as the containers request of what the node does not have itself.", "Pod status.extendedResourceClaimStatus; DeviceClass spec.extendedResourceName; KEP-5004"},
	{boundAfterConditions, Must, "A Pod is bound when all binding conditions of its devices are true, and no binding failure condition is.", conditionsCopiedField},
	{claimReleased, Must, "At rest, a claim made from a template is not allocated if its Pod is gone or has ended.", "KEP-4381; resourceclaim controller, syncClaim"},
	{reservationReleased, Must, "At rest, no claim is reserved for a Pod that is gone or has ended.", "ResourceClaim status.reservedFor; resourceclaim controller, syncClaim"},
	{reservationBound, Should, "At rest, a claim is reserved for a Pod without a node only while the Pod waits for the binding conditions of its devices.", "kube-scheduler, DynamicResources.Unreserve; KEP-5007"},
	{allocationNeeded, Should, "At rest, a claim that is no longer reserved is allocated only if a Pod has it that has not ended.", "ResourceClaim status.allocation; KEP-4381"},
	{podPlaced, Should, "At rest, no Pod waits if upstream's allocator finds devices for its claims and extended resources on a node that suits the Pod, and an exhaustive search does not rule them out.", "structured allocator, Allocate"},
	{podPlaceable, Should, "At rest, no Pod waits if an exhaustive search finds such devices, though upstream's allocator does not.", "ResourceClaim spec.devices; KEP-4381"},
	{preemptedInVain, Should, "At rest, no Pod with claims waits if others were preempted on the node for which it was nominated, and no Pod of higher priority than theirs was bound there since. It may wait for the binding conditions of its devices.", "Pod status.nominatedNodeName; Pod condition DisruptionTarget"},
}

// Statements returns all statements.
func Statements() []Statement { return slices.Clone(all) }

// statementByID returns a statement that exists.
func statementByID(id string) Statement {
	i := slices.IndexFunc(all, func(s Statement) bool { return s.ID == id })
	if i < 0 {
		panic(fmt.Sprintf("drajudge: no statement has the ID %q", id))
	}
	return all[i]
}

package v1alpha1

import "strings"

// The reasons of the events that kwok-dra writes. All of them are Warnings: what
// goes right is in metrics, status and log. docs/reference/events.md is made from
// these comments: the first sentence says what the event is on, the others what it
// means and what to do.
const (
	// ReasonInvalidConfiguration is on a ConfigMap or a custom resource. Its newest
	// version is refused, and the last good one remains in force. The message names the
	// object, the field, the value and what would be valid.
	ReasonInvalidConfiguration = "InvalidConfiguration"

	// ReasonNormalized is on `dra-kwok-configmap`, a DRAConfig or a NodeOverlay. What
	// the API server would not accept as written is normalized; the message lists it,
	// once for each content. Nothing has to be done.
	ReasonNormalized = "Normalized"

	// ReasonPublishFailed is on a Node. A template cannot be rendered for it, its
	// annotation of device taints has a mistake, documents clash on it, its pool has the
	// name of another node's, or a write keeps failing. The node's slices remain as they
	// are, except those of a pool that has the name of another node's: they are deleted.
	ReasonPublishFailed = "PublishFailed"

	// ReasonStatusFailed is on a custom resource. Its status cannot be written, so what it
	// shows is out of date; the message has the API server's answer. kwok-dra tries again
	// every minute.
	ReasonStatusFailed = "StatusFailed"

	// ReasonTemplateHidden is on the custom resource or ConfigMap of a template. On
	// nodes that it selects, another template of its driver has a higher priority, so
	// its devices are not published there. The message names that template; change the
	// priority or a nodeSelector, unless this is meant.
	ReasonTemplateHidden = "TemplateHidden"

	// ReasonPoolNotManaged is on the custom resource or ConfigMap of a template whose pool
	// nodes share, or on a Node if the template is from a file. The pool belongs to another
	// installation of kwok-dra, and this one leaves it alone. The message names both, and
	// how to take the pool over.
	ReasonPoolNotManaged = "PoolNotManaged"

	// ReasonFieldsDropped is on a Node or a ConfigMap. The API server drops a field
	// because a feature gate is off. Turn on the gate that the message names, or remove
	// the field.
	ReasonFieldsDropped = "FieldsDropped"

	// ReasonDeviceClassNotManaged is on `dra-kwok-configmap`. A DeviceClass of the name
	// that it needs exists, and kwok-dra, or this installation of it, did not make it. Pods
	// get what that one selects. Delete it to have kwok-dra make one; the message says how
	// to take over that of another installation.
	ReasonDeviceClassNotManaged = "DeviceClassNotManaged"

	// ReasonDeviceClassFailed is on `dra-kwok-configmap`. Its DeviceClass cannot be
	// written; the message has the API server's answer.
	ReasonDeviceClassFailed = "DeviceClassFailed"

	// ReasonFailedPrepare is on a Pod. Its claims cannot be prepared. The name and the
	// text are the kubelet's; the end of the message is the cause.
	ReasonFailedPrepare = "FailedPrepareDynamicResources"

	// ReasonKubeletNotStarted is on a Node. The files of the node in the directory for plugins
	// cannot be used, so no real driver can register there, and the claims that real drivers
	// have prepared stay prepared. Pods that need only templates' drivers go on. The message
	// names the file, what is wrong with it and what to do; kwok-dra tries again every 20 s.
	ReasonKubeletNotStarted = "KubeletNotStarted"

	// ReasonFailedUnprepare is on a Pod that ends. Its claims cannot be unprepared, as while their
	// driver is not there, and it waits for that; the message has the cause, and what ends the wait.
	// A kubelet sends no such event.
	ReasonFailedUnprepare = "FailedUnprepareDynamicResources"

	// ReasonWaitingForNode is on a Pod, with --explain-pods-after. It has claims and no node;
	// the message says why, as kwok-dractl why does.
	ReasonWaitingForNode = "WaitingForNode"

	// ReasonInvalidUsage is on a Pod. An annotation for what its devices do has a mistake,
	// and metrics show them idle. The message names the annotation, the value and what is
	// valid.
	ReasonInvalidUsage = "InvalidUsage"
)

// maxEventMessage is the API server's limit on the message of an event, in
// bytes.
const maxEventMessage = 1024

// EventMessage makes the message of an event from an error. A longer one is cut
// at the end, or the API server would refuse the event.
func EventMessage(err error) string {
	message := strings.ToValidUTF8(err.Error(), "?")
	if len(message) <= maxEventMessage {
		return message
	}
	const more = "..."
	return strings.ToValidUTF8(message[:maxEventMessage-len(more)], "") + more
}

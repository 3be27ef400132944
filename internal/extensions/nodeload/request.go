package nodeload

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

const (
	coreAPI     = "/api/v1"
	resourceAPI = "/apis/resource.k8s.io/v1"
	storageAPI  = "/apis/storage.k8s.io/v1"
	nodeAPI     = "/apis/node.k8s.io/v1"
	leases      = "/apis/coordination.k8s.io/v1/namespaces/" + corev1.NamespaceNodeLease + "/leases"

	// leaseDuration is nodeLeaseDurationSeconds of a KubeletConfiguration by default.
	leaseDuration = 40 * time.Second
	// tokenLifetime is what the API server writes into the volumes of Pods, an hour with a margin.
	tokenLifetime = 3607

	// noDriver is a driver that no node has.
	noDriver = "none.node-load.dra.kwok.x-k8s.io"
	// statusWriteCondition is the condition of a Pod by which a write of its status changes something.
	statusWriteCondition corev1.PodConditionType = "dra.kwok.x-k8s.io/NodeLoad"
)

// heartbeatTimeout is that of the kubelet's requests for its Node and Lease.
var heartbeatTimeout = url.Values{"timeout": {"10s"}}

// codec reads and writes protobuf.
var codec = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)

// request is one request to the API server.
type request struct {
	// verb and resource are as in an audit log.
	verb, resource string
	path           string
	query          url.Values
	body           []byte
	contentType    string
}

var methods = map[string]string{
	"get": http.MethodGet, "list": http.MethodGet, "watch": http.MethodGet, "create": http.MethodPost, "update": http.MethodPut,
	"patch": http.MethodPatch, "deletecollection": http.MethodDelete,
}

func encodeObject(object runtime.Object) []byte {
	data, err := runtime.Encode(codec, object)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", object, err)) // all its fields can be encoded
	}
	return data
}

func newWrite(verb, resource, path string, query url.Values, object runtime.Object) *request {
	return &request{verb: verb, resource: resource, path: path, query: query, body: encodeObject(object), contentType: runtime.ContentTypeProtobuf}
}

func newPatch(resource, path string, query url.Values, patch any) *request {
	data, err := json.Marshal(patch)
	if err != nil {
		panic(fmt.Sprintf("encode a patch of %s: %v", path, err))
	}
	return &request{verb: "patch", resource: resource, path: path, query: query, body: data, contentType: string(types.StrategicMergePatchType)}
}

func getNode(name string) *request {
	return &request{verb: "get", resource: "nodes", path: coreAPI + "/nodes/" + name}
}

func getCSINode(name string, query url.Values) *request {
	return &request{verb: "get", resource: "csinodes", path: storageAPI + "/csinodes/" + name, query: query}
}

// createCSINode makes the object in which a node's CSI drivers register. It ends with the Node.
func createCSINode(node *corev1.Node) *request {
	return newWrite("create", "csinodes", storageAPI+"/csinodes", nil, &storagev1.CSINode{
		TypeMeta:   metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "CSINode"},
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, OwnerReferences: ownedBy(node)},
	})
}

func ownedBy(node *corev1.Node) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}
}

func getLease(node string) *request {
	return &request{verb: "get", resource: "leases", path: leases + "/" + node, query: heartbeatTimeout}
}

// writeLease creates the Lease of a node if it has no version, and renews it otherwise. The Lease has no holder: a kwok that
// is to hold it later takes a Lease without a holder at once, and would wait for one with another holder forever.
func writeLease(node *corev1.Node, version string, now time.Time) *request {
	lease := &coordinationv1.Lease{
		TypeMeta:   metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: node.Name, ResourceVersion: version, OwnerReferences: ownedBy(node)},
		Spec:       coordinationv1.LeaseSpec{LeaseDurationSeconds: new(int32(leaseDuration / time.Second)), RenewTime: &metav1.MicroTime{Time: now}},
	}
	if version == "" {
		return newWrite("create", "leases", leases, heartbeatTimeout, lease)
	}
	return newWrite("update", "leases", leases+"/"+node.Name, heartbeatTimeout, lease)
}

// deleteStaleSlices deletes no slice. A kubelet that starts deletes all slices of its node, since no driver has registered yet;
// on a fake node kwok-dra may have published by then. With a driver that no node has, the API server does the same work as
// for the kubelet of a new node, which has no slices either.
func deleteStaleSlices(node string) *request {
	selector := fields.Set{"spec.driver": noDriver, "spec.nodeName": node}
	return &request{verb: "deletecollection", resource: "resourceslices", path: resourceAPI + "/resourceslices", query: url.Values{"fieldSelector": {selector.String()}}}
}

// patchNodeStatus writes the heartbeats of the conditions that a Node has.
func patchNodeStatus(node *corev1.Node, now time.Time) *request {
	var conditions []map[string]any
	for _, condition := range node.Status.Conditions {
		conditions = append(conditions, map[string]any{"type": condition.Type, "lastHeartbeatTime": metav1.NewTime(now)})
	}
	return newPatch("nodes/status", coreAPI+"/nodes/"+node.Name+"/status", heartbeatTimeout,
		map[string]any{"metadata": map[string]any{"uid": node.UID}, "status": map[string]any{"conditions": conditions}})
}

func podPath(pod *podView) string {
	return coreAPI + "/namespaces/" + pod.Namespace + "/pods/" + pod.Name
}

func getPod(pod *podView) *request {
	return &request{verb: "get", resource: "pods", path: podPath(pod)}
}

// patchPodStatus is a write of a Pod's status that kwok saves. It changes a condition that nobody else knows, since the
// status says everything already.
func patchPodStatus(pod *podView, count int, now time.Time) *request {
	condition := map[string]any{
		"type": statusWriteCondition, "status": corev1.ConditionTrue, "lastTransitionTime": metav1.NewTime(now),
		"reason": "StatusWrite", "message": fmt.Sprintf("write %d of the kubelet's %d", count, writesUntilRunning),
	}
	return newPatch("pods/status", podPath(pod)+"/status", nil,
		map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": map[string]any{"conditions": []any{condition}}})
}

func createToken(pod *podView, audience string) *request {
	token := &authenticationv1.TokenRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"},
		Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: new(int64(tokenLifetime)),
			BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
		},
	}
	if audience != "" {
		token.Spec.Audiences = []string{audience}
	}
	return newWrite("create", "serviceaccounts/token", coreAPI+"/namespaces/"+pod.Namespace+"/serviceaccounts/"+pod.serviceAccount+"/token", nil, token)
}

func getClaim(key types.NamespacedName) *request {
	return &request{verb: "get", resource: "resourceclaims", path: resourceAPI + "/namespaces/" + key.Namespace + "/resourceclaims/" + key.Name}
}

// createEvent writes an event of the kubelet.
func createEvent(node string, about corev1.ObjectReference, reason, message string, now time.Time) *request {
	namespace := about.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	at := metav1.NewTime(now)
	return newWrite("create", "events", coreAPI+"/namespaces/"+namespace+"/events", nil, &corev1.Event{
		TypeMeta:       metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, GenerateName: about.Name + "."},
		InvolvedObject: about, Reason: reason, Message: message, Type: corev1.EventTypeNormal,
		Source: corev1.EventSource{Component: kubeletComponent, Host: node}, ReportingController: kubeletComponent, ReportingInstance: node,
		FirstTimestamp: at, LastTimestamp: at, Count: 1,
	})
}

package drajudge

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
)

// auditedKinds are the kinds that the judge looks at, by the names of their resources.
var auditedKinds = map[string]string{
	"deviceclasses":    "DeviceClass",
	"devicetaintrules": "DeviceTaintRule",
	"namespaces":       "Namespace",
	"nodes":            "Node",
	"pods":             "Pod",
	"resourceclaims":   "ResourceClaim",
	"resourcequotas":   "ResourceQuota",
	"resourceslices":   "ResourceSlice",
}

// auditEvent has the fields of audit.k8s.io/v1 Event that matter.
type auditEvent struct {
	Stage          string           `json:"stage"`
	StageTimestamp metav1.MicroTime `json:"stageTimestamp"`
	RequestURI     string           `json:"requestURI"`
	Verb           string           `json:"verb"`
	ObjectRef      struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	RequestObject  json.RawMessage `json:"requestObject"`
	ResponseObject json.RawMessage `json:"responseObject"`
}

// ReadAudit reads an audit log of the API server, one JSON event a line. The audit policy needs level RequestResponse for
// the kinds that the judge looks at and for pods/binding. Objects that existed before the log began are
// known from their first write in it.
func ReadAudit(reader io.Reader) (History, error) {
	decoder := json.NewDecoder(reader)
	log := &auditLog{objects: map[key]runtime.Object{}}
	for line := 1; ; line++ {
		var event auditEvent
		err := decoder.Decode(&event)
		if errors.Is(err, io.EOF) {
			return log.history, nil
		}
		if err == nil {
			err = log.addEvent(&event)
		}
		if err != nil {
			return nil, fmt.Errorf("read audit event %d: %w", line, err)
		}
	}
}

// auditLog turns audit events into watch events.
type auditLog struct {
	history History
	// objects are the last versions, and newest is the highest resource version so far.
	objects map[key]runtime.Object
	newest  string
}

// addEvent adds what a request has written.
func (l *auditLog) addEvent(event *auditEvent) error {
	kind := auditedKinds[event.ObjectRef.Resource]
	if kind == "" || event.Stage != "ResponseComplete" || event.ResponseStatus.Code >= 300 || isDryRun(event.RequestURI) {
		return nil
	}
	id := key{kind, event.ObjectRef.Namespace, event.ObjectRef.Name}
	if kind == "Namespace" {
		id.namespace = "" // a request for a namespace has its name there too
	}
	switch {
	case event.ObjectRef.Subresource == "binding":
		return l.addBinding(id, event)
	case event.ObjectRef.Subresource != "" && event.ObjectRef.Subresource != "status":
		return nil
	}
	switch event.Verb {
	case "create", "update", "patch", "delete":
		return l.addResponse(id, event)
	case "deletecollection":
		return l.addCollection(kind, event)
	}
	return nil
}

func isDryRun(uri string) bool {
	parsed, err := url.Parse(uri)
	return err == nil && parsed.Query().Has("dryRun")
}

// addResponse adds the object in the response to a write.
func (l *auditLog) addResponse(id key, event *auditEvent) error {
	if len(event.ResponseObject) == 0 {
		return fmt.Errorf("the %s of %s %s has no responseObject: log it at level RequestResponse", event.Verb, event.ObjectRef.Resource, id.name)
	}
	var response metav1.TypeMeta
	if err := json.Unmarshal(event.ResponseObject, &response); err != nil {
		return fmt.Errorf("decode the kind of a responseObject: %w", err)
	}
	if response.Kind == "Status" { // the answer to a deletion that is complete
		l.addObject(event, l.objects[id], true)
		return nil
	}
	object, err := decodeObject(id.kind, event.ResponseObject)
	if err != nil {
		return err
	}
	l.addObject(event, object, event.Verb == "delete" && !isDeletedLater(object) || isDeletedNow(object))
	return nil
}

// addCollection adds the objects that one request has deleted.
func (l *auditLog) addCollection(kind string, event *auditEvent) error {
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if len(event.ResponseObject) > 0 {
		if err := json.Unmarshal(event.ResponseObject, &list); err != nil {
			return fmt.Errorf("decode a list of objects: %w", err)
		}
	}
	for _, item := range list.Items {
		object, err := decodeObject(kind, item)
		if err != nil {
			return err
		}
		l.addObject(event, object, !isDeletedLater(object))
	}
	return nil
}

// addBinding adds that a Pod was bound. The response does not have the Pod.
func (l *auditLog) addBinding(id key, event *auditEvent) error {
	var binding corev1.Binding
	if err := json.Unmarshal(event.RequestObject, &binding); err != nil {
		return fmt.Errorf("decode the binding of Pod %s: %w", id.name, err)
	}
	known, isPod := l.objects[id].(*corev1.Pod)
	if !isPod {
		return nil
	}
	pod := known.DeepCopy()
	pod.Spec.NodeName = binding.Target.Name
	pod.ResourceVersion = ""
	l.addObject(event, pod, false)
	return nil
}

// addObject adds a version of an object. One without a resource version of its own, as after its deletion, follows on all
// before it.
func (l *auditLog) addObject(event *auditEvent, object runtime.Object, isDeleted bool) {
	if object == nil {
		return
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return
	}
	id := keyOf(object, auditedKinds[event.ObjectRef.Resource])
	if order, err := resourceversion.CompareResourceVersion(l.newest, accessor.GetResourceVersion()); l.newest == "" || err == nil && order < 0 {
		l.newest = accessor.GetResourceVersion()
	} else if isDeleted || accessor.GetResourceVersion() == "" {
		object = object.DeepCopyObject()
		if accessor, err = meta.Accessor(object); err == nil {
			accessor.SetResourceVersion(l.newest)
		}
	}
	written := Event{Type: watch.Modified, Object: object, Time: event.StageTimestamp.Time}
	switch {
	case isDeleted:
		written.Type = watch.Deleted
		delete(l.objects, id)
	case l.objects[id] == nil:
		written.Type = watch.Added
		l.objects[id] = object
	default:
		l.objects[id] = object
	}
	l.history = append(l.history, written)
}

// isDeletedLater reports whether an object waits for finalizers, or for the end of its grace period.
func isDeletedLater(object runtime.Object) bool {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return false
	}
	grace := accessor.GetDeletionGracePeriodSeconds()
	return len(accessor.GetFinalizers()) > 0 || grace != nil && *grace > 0
}

// isDeletedNow reports whether a write has removed what an object that is being deleted waited for.
func isDeletedNow(object runtime.Object) bool {
	accessor, err := meta.Accessor(object)
	return err == nil && accessor.GetDeletionTimestamp() != nil && !isDeletedLater(object)
}

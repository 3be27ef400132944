package drajudge

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
)

// Event is a watch event. An Observer keeps the object, so nobody may change it afterwards.
type Event struct {
	Type   watch.EventType
	Object runtime.Object
	// Time is when the object was written. Only Options.DecisionLag needs it.
	Time time.Time
}

// History has the events of a cluster, of one or several watches.
type History []Event

// Sorted returns the events in the order of their resource versions, as several watches together do not
// deliver them.
func (h History) Sorted() History {
	return slices.SortedStableFunc(slices.Values(h), func(a, b Event) int {
		order, err := resourceversion.CompareResourceVersion(versionOf(a.Object), versionOf(b.Object))
		if err != nil {
			return 0 // a fake API server has no versions: the order stays
		}
		return order
	})
}

func versionOf(object runtime.Object) string {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return ""
	}
	return accessor.GetResourceVersion()
}

// newObjects make an empty object of each kind that the judge looks at. Older versions of their APIs have the
// same fields.
var newObjects = map[string]func() runtime.Object{
	"DeviceClass":     func() runtime.Object { return &resourcev1.DeviceClass{} },
	"DeviceTaintRule": func() runtime.Object { return &resourcev1.DeviceTaintRule{} },
	"Namespace":       func() runtime.Object { return &corev1.Namespace{} },
	"Node":            func() runtime.Object { return &corev1.Node{} },
	"Pod":             func() runtime.Object { return &corev1.Pod{} },
	"ResourceClaim":   func() runtime.Object { return &resourcev1.ResourceClaim{} },
	"ResourceQuota":   func() runtime.Object { return &corev1.ResourceQuota{} },
	"ResourceSlice":   func() runtime.Object { return &resourcev1.ResourceSlice{} },
}

// ReadWatch reads a stream of JSON objects as they are printed by
//
//	kubectl get resourceslices --watch --output-watch-events -o json
//
// or sent by the API server, of one or of several kinds. Next to type and object an event may have a time. Other
// kinds and bookmarks are skipped.
func ReadWatch(reader io.Reader) (History, error) {
	decoder := json.NewDecoder(reader)
	var history History
	for {
		var line struct {
			Type   watch.EventType  `json:"type"`
			Time   metav1.MicroTime `json:"time"`
			Object json.RawMessage  `json:"object"`
		}
		if err := decoder.Decode(&line); errors.Is(err, io.EOF) {
			return history, nil
		} else if err != nil {
			return nil, fmt.Errorf("read watch event %d: %w", len(history)+1, err)
		}
		if line.Type == watch.Bookmark {
			continue
		}
		object, err := decodeKind(line.Object)
		if err != nil {
			return nil, fmt.Errorf("read watch event %d: %w", len(history)+1, err)
		}
		if object != nil {
			history = append(history, Event{Type: line.Type, Object: object, Time: line.Time.Time})
		}
	}
}

// decodeKind returns nil for a kind that the judge does not look at.
func decodeKind(text []byte) (runtime.Object, error) {
	var kind metav1.TypeMeta
	if err := json.Unmarshal(text, &kind); err != nil {
		return nil, fmt.Errorf("decode the kind of an object: %w", err)
	}
	if newObjects[kind.Kind] == nil {
		return nil, nil
	}
	return decodeObject(kind.Kind, text)
}

func decodeObject(kind string, text []byte) (runtime.Object, error) {
	object := newObjects[kind]()
	if err := json.Unmarshal(text, object); err != nil {
		return nil, fmt.Errorf("decode a %s: %w", kind, err)
	}
	return object, nil
}

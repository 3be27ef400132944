package shard

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
)

// Recorder records events about what belongs to no single node. Only the leader records them,
// since all replicas see the same.
func (o *Owner) Recorder(to record.EventRecorder) record.EventRecorder {
	return &leaderRecorder{owner: o, to: to}
}

type leaderRecorder struct {
	owner *Owner
	to    record.EventRecorder
}

func (r *leaderRecorder) Event(object runtime.Object, eventType, reason, message string) {
	if r.owner.Leads() {
		r.to.Event(object, eventType, reason, message)
	}
}

func (r *leaderRecorder) Eventf(object runtime.Object, eventType, reason, messageFmt string, args ...any) {
	if r.owner.Leads() {
		r.to.Eventf(object, eventType, reason, messageFmt, args...)
	}
}

func (r *leaderRecorder) AnnotatedEventf(object runtime.Object, annotations map[string]string, eventType, reason, messageFmt string, args ...any) {
	if r.owner.Leads() {
		r.to.AnnotatedEventf(object, annotations, eventType, reason, messageFmt, args...)
	}
}

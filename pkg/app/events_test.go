package app

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// TestOnceSink: what is said of a content is said once, also by another process.
func TestOnceSink(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset()
	say := func(name, reason, message string) error {
		sink := onceSink{&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")}}
		_, err := sink.Create(&corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: "karpenter", Name: name},
			InvolvedObject: corev1.ObjectReference{Kind: "ConfigMap", Namespace: "karpenter", Name: "c", UID: "uid"},
			Reason:         reason,
			Message:        message,
		})
		return err
	}
	require.NoError(t, say("c.1", "Normalized", "a-b is a_b"))
	require.True(t, apierrors.IsAlreadyExists(say("c.2", "Normalized", "a-b is a_b")))
	require.NoError(t, say("c.3", "Normalized", "a/b is a.b"))
	require.NoError(t, say("c.4", "InvalidConfiguration", "bad"))
	require.NoError(t, say("c.5", "InvalidConfiguration", "bad"))
}

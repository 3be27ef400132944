package nodeload

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func newSlice(version string) *resourcev1.ResourceSlice {
	return &resourcev1.ResourceSlice{
		TypeMeta:   metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "ResourceSlice"},
		ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: version, Annotations: map[string]string{"text": `"resourceVersion":"9"` + strings.Repeat("x", 1000)}},
		Spec: resourcev1.ResourceSliceSpec{Driver: "x", Devices: []resourcev1.Device{{Name: "gpu", Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"type": {StringValue: new("ERROR")},
		}}}},
	}
}

// protobufEvent is an event as it is on the wire.
func protobufEvent(t *testing.T, kind string, object runtime.Object) []byte {
	t.Helper()
	data, err := (&metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: encodeObject(object)}}).Marshal()
	require.NoError(t, err)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...)
}

func jsonEvent(t *testing.T, kind string, object runtime.Object) []byte {
	t.Helper()
	data, err := json.Marshal(object)
	require.NoError(t, err)
	event, err := json.Marshal(map[string]any{"type": kind, "object": json.RawMessage(data)})
	require.NoError(t, err)
	return append(event, '\n')
}

// TestEventsTellTheirVersion in both encodings, and end with an error of the API server.
func TestEventsTellTheirVersion(t *testing.T) {
	t.Parallel()
	for encoding, with := range map[string]struct {
		encode func(t *testing.T, kind string, object runtime.Object) []byte
		read   func(stream io.Reader, version *string) error
	}{"protobuf": {protobufEvent, readProtobufEvents}, "json": {jsonEvent, readJSONEvents}} {
		t.Run(encoding, func(t *testing.T) {
			t.Parallel()
			version := ""
			events := join(with.encode(t, "ADDED", newSlice("3")), with.encode(t, "BOOKMARK", newSlice("17")))
			require.NoError(t, with.read(bytes.NewReader(events), &version))
			require.Equal(t, "17", version)

			gone := &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Code: 410}
			events = join(events, with.encode(t, "ERROR", gone), with.encode(t, "ADDED", newSlice("20")))
			require.ErrorIs(t, with.read(bytes.NewReader(events), &version), errExpired)
			require.Equal(t, "17", version)
		})
	}
	version := ""
	require.Error(t, readProtobufEvents(bytes.NewReader(protobufEvent(t, "ADDED", newSlice("3"))[:40]), &version), "an event that ends in the middle")
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

package renewals

import (
	"bytes"
	"errors"
	"hash/maphash"

	"google.golang.org/protobuf/encoding/protowire"
)

// fields are some of a message's, by their numbers in the generated.proto of
// k8s.io/api and k8s.io/apimachinery: those that are left out, which have none
// themselves, and those that have some.
type fields map[protowire.Number]fields

// metadata without resourceVersion and managedFields, which change with all that
// is written.
var metadata = fields{6: nil, 17: nil}

// renewed are the fields that change by a renewal, of the kinds that are renewed:
// status.conditions[*].lastHeartbeatTime of a Node, and spec.renewTime of a Lease.
var renewed = map[string]fields{
	"v1 Node":                      {1: metadata, 3: {4: {3: nil}}},
	"coordination.k8s.io/v1 Lease": {1: metadata, 2: {4: nil}},
}

// event is an event of a watch (WatchEvent in k8s.io/apimachinery/pkg/apis/meta/v1),
// as it stands in the frame.
type event struct {
	kind   []byte // ADDED, MODIFIED, DELETED, BOOKMARK or ERROR
	object []byte
	uid    []byte
	// renewed is nil where objects of the kind are not renewed.
	renewed fields
}

// magic begins what is encoded by Kubernetes in protobuf.
var magic = []byte("k8s\x00")

var errMagic = errors.New("want the prefix k8s of Kubernetes' protobuf")

// readEvent finds what an event is about.
func readEvent(frame []byte) (event, error) {
	var e event
	extension, err := find(frame, 1, 2)
	if err != nil {
		return e, err
	}
	e.kind = extension[0]
	raw, err := find(extension[1], 1)
	if err != nil {
		return e, err
	}
	envelope, is := bytes.CutPrefix(raw[0], magic)
	if !is {
		return e, errMagic
	}
	unknown, err := find(envelope, 1, 2)
	if err != nil {
		return e, err
	}
	typeMeta, err := find(unknown[0], 1, 2)
	if err != nil {
		return e, err
	}
	e.object = unknown[1]
	e.renewed = renewed[string(typeMeta[0])+" "+string(typeMeta[1])]
	return e, e.identify()
}

// identify finds the UID.
func (e *event) identify() error {
	meta, err := find(e.object, 1)
	if err != nil {
		return err
	}
	uid, err := find(meta[0], 5)
	e.uid = uid[0]
	return err
}

// content hashes all that is said of an object but what a renewal changes.
func (e *event) content() (uint64, error) {
	var hash maphash.Hash
	hash.SetSeed(seed)
	err := e.renewed.hash(&hash, e.object)
	return hash.Sum64(), err
}

var seed = maphash.MakeSeed()

// hash hashes a message without the fields.
func (f fields) hash(hash *maphash.Hash, message []byte) error {
	for len(message) > 0 {
		number, kind, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return protowire.ParseError(tag)
		}
		value := protowire.ConsumeFieldValue(number, kind, message[tag:])
		if value < 0 {
			return protowire.ParseError(value)
		}
		below, leftOut := f[number]
		switch inner, size := protowire.ConsumeBytes(message[tag:]); {
		case below != nil && size == value && kind == protowire.BytesType:
			_, _ = hash.Write(message[:tag])
			if err := below.hash(hash, inner); err != nil {
				return err
			}
		case below != nil || !leftOut:
			_, _ = hash.Write(message[:tag+value])
		}
		message = message[tag+value:]
	}
	return hash.WriteByte(0) // no tag is 0, so that it ends the message
}

// find returns the values of fields that are messages, strings or bytes, or nil.
func find(message []byte, numbers ...protowire.Number) ([2][]byte, error) {
	var found [2][]byte
	for len(message) > 0 {
		number, kind, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return found, protowire.ParseError(tag)
		}
		value := protowire.ConsumeFieldValue(number, kind, message[tag:])
		if value < 0 {
			return found, protowire.ParseError(value)
		}
		for i, wanted := range numbers {
			if number == wanted && kind == protowire.BytesType {
				found[i], _ = protowire.ConsumeBytes(message[tag:])
			}
		}
		message = message[tag+value:]
	}
	return found, nil
}

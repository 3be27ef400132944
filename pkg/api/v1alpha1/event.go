package v1alpha1

import (
	"strings"
	"unicode/utf8"
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
	cut := maxEventMessage - len(more)
	for !utf8.RuneStart(message[cut]) {
		cut--
	}
	return message[:cut] + more
}

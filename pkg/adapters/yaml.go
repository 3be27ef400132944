package adapters

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// readYAML makes JSON of the one document of a text, or nil where there is
// nothing but comments.
func readYAML(text string) (json.RawMessage, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	var found json.RawMessage
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, errors.New("no valid YAML: " + err.Error())
		}
		data, err := sigsyaml.YAMLToJSONStrict(document)
		if err != nil {
			return nil, errors.New("no valid YAML: " + reason(err))
		}
		if bytes.Equal(data, []byte("null")) {
			continue
		}
		if found != nil {
			return nil, errors.New("there is a second document after a line ---: put all into one")
		}
		found = data
	}
}

// reason is what a YAML library says, in one line.
func reason(err error) string {
	text := err.Error()
	for _, prefix := range []string{"error converting YAML to JSON: ", "yaml: ", "unmarshal errors:\n", "  "} {
		text = strings.TrimPrefix(text, prefix)
	}
	first, _, _ := strings.Cut(text, "\n")
	return first
}

// written are the attributes of devices as they are written. On the way to JSON
// 9.0 becomes 9, and yes becomes true.
type written struct {
	Devices []struct {
		Attributes map[string]yaml.Node `yaml:"attributes"`
	} `yaml:"devices"`
}

// scalar is the text and the type in YAML of an attribute that is no object and
// no list.
func (w written) scalar(device int, attribute string) (text, tag string) {
	if device >= len(w.Devices) {
		return "", ""
	}
	node := w.Devices[device].Attributes[attribute]
	for node.Alias != nil {
		node = *node.Alias
	}
	if node.Kind != yaml.ScalarNode {
		return "", ""
	}
	return node.Value, node.ShortTag()
}

package devices

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// errUnstable refuses functions whose results differ from call to call: every
// reconciliation would find every slice changed and write it again.
var errUnstable = errors.New("uses a function whose result differs from call to call; use uuid or values of .Node instead")

// isUnstable and changesValues are functions of kwok that templates may not call.
var (
	isUnstable = setOf(`Now StartTime ago bcrypt date dateInZone date_in_zone encryptAES env expandenv genCA genCAWithKey
genPrivateKey genSelfSignedCert genSelfSignedCertWithKey genSignedCert genSignedCertWithKey getHostByName htmlDate
htmlDateInZone htpasswd now randAlpha randAlphaNum randAscii randBytes randInt randNumeric shuffle uuidv4`)
	changesValues = setOf(`merge mergeOverwrite mustMerge mustMergeOverwrite set unset`)
)

func setOf(names string) map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(names) {
		set[name] = true
	}
	return set
}

// quoted stands in for kwok's Quote.
func quoted(value any) string {
	encoded, err := json.Marshal(value)
	switch {
	case err != nil:
		return strconv.Quote(fmt.Sprint(value))
	case encoded[0] == '"':
		return string(encoded)
	}
	return strconv.Quote(string(encoded))
}

// asYAML stands in for kwok's YAML.
func asYAML(value any, indent ...int) (string, error) {
	encoded, err := yaml.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("encode YAML: %w", err)
	}
	text := string(encoded)
	if len(indent) != 1 || indent[0] <= 0 {
		return text, nil
	}
	return strings.ReplaceAll("\n"+text, "\n", "\n"+strings.Repeat(" ", 2*indent[0])), nil
}

// sortedKeys stands in for sprig's keys, whose order differs from call to call.
func sortedKeys(objects ...map[string]any) []string {
	var keys []string
	for _, object := range objects {
		keys = append(keys, slices.Sorted(maps.Keys(object))...)
	}
	return keys
}

// sortedValues stands in for sprig's values: in the order of the keys.
func sortedValues(object map[string]any) []any {
	var values []any
	for _, key := range sortedKeys(object) {
		values = append(values, object[key])
	}
	return values
}

// uuidSpace is the namespace of the UUIDs that templates make.
var uuidSpace = uuid.NewSHA1(uuid.NameSpaceDNS, []byte(v1alpha1.GroupName))

// deterministicUUID makes a UUID (version 5) of its arguments: the same
// arguments always give the same UUID. A field that the Node lacks is refused,
// or all nodes that lack it would share a UUID.
func deterministicUUID(arguments ...any) (string, error) {
	parts := make([]string, len(arguments))
	for i, argument := range arguments {
		if argument == nil {
			return "", fmt.Errorf("argument %d is a field that the Node lacks", i+1)
		}
		parts[i] = fmt.Sprint(argument)
	}
	return uuid.NewSHA1(uuidSpace, []byte(strings.Join(parts, "\x00"))).String(), nil
}

package devices

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/api/validation"
)

// Taints are the device taints that a Node's annotation asks for.
type Taints []nodeTaint

type nodeTaint struct {
	// driver is empty for devices of that name in every pool of the node.
	driver, device string
	taint          resourcev1.DeviceTaint
}

// TaintsOf reads the annotation v1alpha1.DeviceTaintsAnnotation of a Node: device taints in kubectl's
// syntax, separated by commas. As with kubectl, giving a taint twice is an error.
func TaintsOf(node *lifecycle.Object) (Taints, error) {
	text := node.GetAnnotations()[v1alpha1.DeviceTaintsAnnotation]
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var taints Taints
	var problems []string
	seen := map[nodeTaint]bool{} // without values
	for entry := range strings.SplitSeq(text, ",") {
		entry = strings.TrimSpace(entry)
		taint, err := parseTaint(entry)
		key := taint
		key.taint.Value = ""
		if err == nil && seen[key] {
			err = errors.New("has the device, key and effect of another entry")
		}
		if err != nil {
			problems = append(problems, fmt.Sprintf("entry %q: %v", entry, err))
		}
		if len(problems) > maxProblems {
			break // to find all would take as long as rendering a thousand nodes
		}
		seen[key] = true
		taints = append(taints, taint)
	}
	return taints, taintsError(problems)
}

// parseTaint splits an entry at the first colon and at the last, since the key may have slashes too.
func parseTaint(entry string) (nodeTaint, error) {
	target, rest, _ := strings.Cut(entry, ":")
	driver, device, qualified := strings.Cut(target, "/")
	if !qualified {
		driver, device = "", target
	}
	end := strings.LastIndex(rest, ":")
	if device == "" || qualified && driver == "" || end < 0 {
		return nodeTaint{}, errors.New("must be [driver/]device:key[=value]:effect, for example gpu-0:example.com/xid=79:NoExecute")
	}
	key, value, _ := strings.Cut(rest[:end], "=")
	taint := resourcev1.DeviceTaint{Key: key, Value: value, Effect: resourcev1.DeviceTaintEffect(rest[end+1:])}
	return nodeTaint{driver: driver, device: device, taint: taint}, validation.ValidateTaint(&taint, nil).ToAggregate()
}

// maxProblems is how many entries an error names, and maxProblemLength how many bytes it has for each.
// An annotation has room for thousands, and the event of each Pod of the node would list all.
const (
	maxProblems      = 5
	maxProblemLength = 500
)

func taintsError(problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	if len(problems) > maxProblems {
		problems = append(problems[:maxProblems:maxProblems], "and more")
	}
	for i, problem := range problems {
		if len(problem) > maxProblemLength {
			problems[i] = strings.ToValidUTF8(problem[:maxProblemLength], "") + "..."
		}
	}
	return fmt.Errorf("annotation %s: %s", v1alpha1.DeviceTaintsAnnotation, strings.Join(problems, "; "))
}

// String formats the entry as in the annotation.
func (t nodeTaint) String() string {
	text := t.device + ":" + t.taint.Key
	if t.driver != "" {
		text = t.driver + "/" + text
	}
	if t.taint.Value != "" {
		text += "=" + t.taint.Value
	}
	return text + ":" + string(t.taint.Effect)
}

// addTo taints the devices of a pool. It copies the taints of a device, which it may share with other
// devices and with the template. A taint replaces one with the same key and effect, as in kubectl
// and the scheduler.
func (t Taints) addTo(pool *Pool) error {
	if len(t) == 0 {
		return nil
	}
	indexes := make(map[string]int, len(pool.Devices))
	for i := range pool.Devices {
		indexes[pool.Devices[i].Name] = i
	}
	for _, entry := range t {
		i, has := indexes[entry.device]
		if !has || entry.driver != "" && entry.driver != pool.Driver {
			continue
		}
		device := &pool.Devices[i]
		device.Taints = slices.DeleteFunc(slices.Clone(device.Taints), func(own resourcev1.DeviceTaint) bool {
			return own.Key == entry.taint.Key && own.Effect == entry.taint.Effect
		})
		device.Taints = append(device.Taints, entry.taint)
		if len(device.Taints) > resourcev1.DeviceTaintsMaxLength {
			return taintsError([]string{fmt.Sprintf("device %s of driver %s has more than %d taints, those of its template counted",
				device.Name, pool.Driver, resourcev1.DeviceTaintsMaxLength)})
		}
	}
	return nil
}

// Missing returns an error that names the entries whose device the node lacks. Pools are those of the
// node without those of held drivers, whose devices are unknown.
func (t Taints) Missing(pools []Pool, held map[string]error) error {
	if len(t) == 0 {
		return nil
	}
	known, example := map[[2]string]bool{}, "; it has none"
	for i := range pools {
		for j := range pools[i].Devices {
			name := pools[i].Devices[j].Name
			if len(known) == 0 {
				example = fmt.Sprintf("; it has, for example, %s/%s", pools[i].Driver, name)
			}
			known[[2]string{pools[i].Driver, name}], known[[2]string{"", name}] = true, true
		}
	}
	var problems []string
	for _, entry := range t {
		unsure := held[entry.driver] != nil || entry.driver == "" && len(held) > 0
		if !unsure && !known[[2]string{entry.driver, entry.device}] {
			problems = append(problems, fmt.Sprintf("entry %q: the node has no such device%s", entry, example))
		}
	}
	return taintsError(problems)
}

// Healthy reports whether a device has no taint that repels or evicts Pods.
func Healthy(device *resourcev1.Device) bool {
	return !slices.ContainsFunc(device.Taints, func(taint resourcev1.DeviceTaint) bool {
		return taint.Effect == resourcev1.DeviceTaintEffectNoSchedule || taint.Effect == resourcev1.DeviceTaintEffectNoExecute
	})
}

package devices

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/api/validation"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
)

// Taints are the device taints that a Node's annotation asks for.
type Taints []nodeTaint

// nodeTaint is an entry of the annotation.
type nodeTaint struct {
	// driver is empty for the device of that name in every pool of the node.
	driver, device string
	taint          resourcev1.DeviceTaint
}

// TaintsOf reads the annotation v1alpha1.DeviceTaintsAnnotation of a Node: device taints
// in kubectl's syntax, separated by commas. As with kubectl, a taint that is given twice
// is a mistake.
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
		place := taint
		place.taint.Value = ""
		if err == nil && seen[place] {
			err = errors.New("has the device, key and effect of another entry")
		}
		if err != nil {
			problems = append(problems, fmt.Sprintf("entry %q: %v", entry, err))
		}
		if len(problems) > mostProblems {
			break // it takes as long as all that is right on a thousand nodes
		}
		seen[place] = true
		taints = append(taints, taint)
	}
	return taints, taintsError(problems)
}

// parseTaint splits at the first colon and at the last, since the key may have
// slashes as well.
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

// mostProblems is how many entries an error names, and longestProblem how much it
// says of each. An annotation has room for thousands, and the event of each Pod
// of the node would list all.
const (
	mostProblems   = 5
	longestProblem = 500
)

func taintsError(problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	if len(problems) > mostProblems {
		problems = append(problems[:mostProblems:mostProblems], "and more")
	}
	for i, problem := range problems {
		if len(problem) > longestProblem {
			problems[i] = strings.ToValidUTF8(problem[:longestProblem], "") + "..."
		}
	}
	return fmt.Errorf("annotation %s: %s", v1alpha1.DeviceTaintsAnnotation, strings.Join(problems, "; "))
}

// String is the entry as the annotation has it.
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

// addTo taints the devices of a pool. The taints of a device may be shared with
// others, and with the template, so they are copied. One taint replaces another by the
// rule of kubectl and the scheduler: key and effect decide.
func (t Taints) addTo(pool *Pool) error {
	if len(t) == 0 {
		return nil
	}
	places := make(map[string]int, len(pool.Devices))
	for i := range pool.Devices {
		places[pool.Devices[i].Name] = i
	}
	for _, entry := range t {
		i, has := places[entry.device]
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

// Missing is an error that names the entries whose device the node does not
// have. Pools are those of the node but for the held drivers, of whose devices
// nothing is known.
func (t Taints) Missing(pools []Pool, held map[string]error) error {
	if len(t) == 0 {
		return nil
	}
	known := map[[2]string]bool{}
	for i := range pools {
		for j := range pools[i].Devices {
			name := pools[i].Devices[j].Name
			known[[2]string{pools[i].Driver, name}], known[[2]string{"", name}] = true, true
		}
	}
	example := "; it has none"
	if len(pools) > 0 {
		example = fmt.Sprintf("; it has, for example, %s/%s", pools[0].Driver, pools[0].Devices[0].Name)
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

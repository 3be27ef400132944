package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// ready is the type and the reason of the condition of ClaimStatusReady.
const ready, readyReason = "Ready", "Prepared"

// learned is what the claims of a pool tell of its driver.
type learned struct {
	status *v1alpha1.ClaimStatus
	// edits are what the CDI devices are, as YAML; a template has no place for them.
	edits string
	notes []string
}

// learnClaimStatus makes the claimStatus of the devices of a pool that are prepared.
func learnClaimStatus(all []*prepared) (*learned, error) {
	if len(all) == 0 {
		return &learned{notes: []string{"claimStatus is not recorded: no claim has a device of this pool; run a Pod on the node"}}, nil
	}
	var entered, identified, edited []*prepared
	for _, p := range all {
		if p.entry != nil {
			entered = append(entered, p)
		}
		if len(p.ids) > 0 {
			identified = append(identified, p)
		}
		if len(p.edits) > 0 {
			edited = append(edited, p)
		}
	}
	l := &learned{status: &v1alpha1.ClaimStatus{Mode: v1alpha1.ClaimStatusNone}}
	if n := len(all) - len(entered); n > 0 && n < len(all) {
		l.notes = append(l.notes, fmt.Sprintf("%d of %d devices have no entry in the status of their claims: they may not be prepared yet", n, len(all)))
	}
	if err := l.learnEntries(entered); err != nil {
		return nil, err
	}
	return l, l.learnDeviceIDs(identified, edited)
}

// learnEntries learns from what the driver has written to claims.
func (l *learned) learnEntries(all []*prepared) error {
	if len(all) == 0 {
		return nil
	}
	l.learnMode(all)
	g := &generalizer{symbols: symbolsOf(all)}
	defer func() { l.notes = append(l.notes, g.notes...) }()
	data, err := decodeParts(all, func(entry *resourcev1.AllocatedDeviceStatus) any { return entry.Data })
	if err != nil {
		return err
	}
	if made := g.generalizeValue("claimStatus.data", data); made != nil {
		raw, err := encodeTemplate(made)
		if err != nil {
			return fmt.Errorf("encode claimStatus.data: %w", err)
		}
		l.status.Data = &runtime.RawExtension{Raw: raw}
	}
	network, err := decodeParts(all, func(entry *resourcev1.AllocatedDeviceStatus) any { return entry.NetworkData })
	if err != nil {
		return err
	}
	encoded, err := json.Marshal(g.generalizeValue("claimStatus.networkData", network))
	if err == nil {
		err = json.Unmarshal(encoded, &l.status.NetworkData)
	}
	if err != nil {
		return fmt.Errorf("encode claimStatus.networkData: %w", err)
	}
	return nil
}

// learnMode chooses the mode by the first entry, and notes the conditions that it does not have.
func (l *learned) learnMode(all []*prepared) {
	mode := map[bool]v1alpha1.ClaimStatusMode{true: v1alpha1.ClaimStatusReady, false: v1alpha1.ClaimStatusNone}
	l.status.Mode = mode[meta.IsStatusConditionTrue(all[0].entry.Conditions, ready)]
	for _, p := range all {
		if mode[meta.IsStatusConditionTrue(p.entry.Conditions, ready)] != l.status.Mode {
			l.addNote("condition Ready=True is not on all devices: the first is taken")
		}
		for _, c := range p.entry.Conditions {
			if c.Type != ready || c.Status != metav1.ConditionTrue || c.Reason != readyReason {
				l.addNote(fmt.Sprintf("condition %s=%s, reason %s, is not in the template: claimStatus.mode has Ready=True, reason Prepared, or none", c.Type, c.Status, c.Reason))
			}
		}
	}
}

// decodeParts is a part of entries as JSON has it.
func decodeParts(all []*prepared, part func(*resourcev1.AllocatedDeviceStatus) any) ([]any, error) {
	values := make([]any, len(all))
	for i, p := range all {
		encoded, err := json.Marshal(part(p.entry))
		if err != nil {
			return nil, fmt.Errorf("claim %s/%s: %w", p.claim.Namespace, p.claim.Name, err)
		}
		decoder := json.NewDecoder(bytes.NewReader(encoded))
		decoder.UseNumber() // keeps integers whole
		if err := decoder.Decode(&values[i]); err != nil {
			return nil, fmt.Errorf("claim %s/%s: %w", p.claim.Namespace, p.claim.Name, err)
		}
	}
	return values, nil
}

// addNote adds a note, once.
func (l *learned) addNote(text string) {
	if !slices.Contains(l.notes, text) {
		l.notes = append(l.notes, text)
	}
}

// learnDeviceIDs learns from what the driver has returned to the kubelet.
func (l *learned) learnDeviceIDs(identified, edited []*prepared) error {
	if len(identified) == 0 {
		return nil
	}
	g := &generalizer{symbols: symbolsOf(identified)}
	ids := make([]any, len(identified))
	for i, p := range identified {
		list := make([]any, len(p.ids))
		for j, id := range p.ids {
			list[j] = id
		}
		ids[i] = list
	}
	for _, id := range g.generalizeValue("claimStatus.cdiDeviceIDs", ids).([]any) {
		l.status.CDIDeviceIDs = append(l.status.CDIDeviceIDs, id.(string))
	}
	l.notes = append(l.notes, g.notes...)
	if len(edited) == 0 {
		return nil
	}
	g = &generalizer{symbols: symbolsOf(edited)}
	edits := make([]any, len(edited))
	for i, p := range edited {
		edits[i] = p.edits
	}
	made, _ := markBareTemplates(g.generalizeValue("CDI", edits))
	encoded, err := yaml.Marshal(made)
	if err != nil {
		return fmt.Errorf("encode the edits of CDI devices: %w", err)
	}
	l.edits = string(encoded)
	l.notes = append(l.notes, g.notes...)
	return nil
}

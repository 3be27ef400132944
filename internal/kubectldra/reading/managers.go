package reading

import (
	"context"
	"encoding/json"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SlicesAndWriters lists the ResourceSlices, and by their names the field managers that have written their specs.
func (r *Reader) SlicesAndWriters(ctx context.Context) (all []*resourcev1.ResourceSlice, writers map[string][]string, err error) {
	writers = map[string][]string{}
	list := func(ctx context.Context, options metav1.ListOptions) (*resourcev1.ResourceSliceList, error) {
		page, err := r.client.ResourceV1().ResourceSlices().List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			writers[page.Items[i].Name] = writersOfSpec(&page.Items[i])
		}
		return page, nil
	}
	all, err = listPages[resourcev1.ResourceSlice](ctx, r, request{resource: "resourceslices"}, list)
	return all, writers, err
}

func writersOfSpec(published *resourcev1.ResourceSlice) []string {
	var writers []string
	for i := range published.ManagedFields {
		entry := &published.ManagedFields[i]
		var fields struct {
			Spec json.RawMessage `json:"f:spec"`
		}
		if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil || fields.Spec == nil {
			continue
		}
		if !slices.Contains(writers, entry.Manager) {
			writers = append(writers, entry.Manager)
		}
	}
	return writers
}

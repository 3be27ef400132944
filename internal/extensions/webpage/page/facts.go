package page

import (
	"maps"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
)

// serveDevice serves GET /api/device?driver=D&pool=P&device=N: all attributes and capacities
// of one device. The caches leave out values that belong to one device, such as a UUID, so the
// slice is read from the API server. The answer is
//
//	{
//	  "product": "NVIDIA H100 80GB HBM3", "memory": "80Gi", "uuid": "GPU-...",  // absent where not known
//	  "attributes": {"productName": "NVIDIA H100 80GB HBM3"}, "capacity": {"memory": "80Gi"}
//	}
func (o *Options) serveDevice(w http.ResponseWriter, r *http.Request) {
	asked := r.URL.Query()
	driver, name := asked.Get("driver"), asked.Get("device")
	slice := o.sliceOf(driver, asked.Get("pool"), name)
	if slice == "" {
		http.Error(w, "there is no such device", http.StatusNotFound)
		return
	}
	published, err := o.Slice(r.Context(), slice)
	if err != nil {
		status := http.StatusBadGateway
		if apierrors.IsNotFound(err) {
			status = http.StatusNotFound
		}
		http.Error(w, "get ResourceSlice "+slice+": "+err.Error(), status)
		return
	}
	for i := range published.Spec.Devices {
		if device := &published.Spec.Devices[i]; device.Name == name {
			writeJSON(w, r, inventory.Describe(driver, device, published.Spec.Devices))
			return
		}
	}
	http.Error(w, "there is no such device any more", http.StatusNotFound)
}

// sliceOf returns the name of the newest slice that has a device, or "".
func (o *Options) sliceOf(driver, pool, device string) string {
	name, generation := "", int64(-1)
	for _, slice := range o.Source.Slices() {
		if slice.Driver != driver || slice.Pool != pool || slice.Generation <= generation {
			continue
		}
		if slices.Contains(slice.Devices.List(), device) {
			name, generation = slice.Name, slice.Generation
		}
	}
	return name
}

// serveLabels serves GET /api/labels: {"names": [...]}, the names of the labels of all fake
// nodes. GET /api/labels?name=N answers {"values": {"VALUE": ["NODE", ...]}}: the nodes
// that have the label. The page asks when it needs them.
func (o *Options) serveLabels(w http.ResponseWriter, r *http.Request) {
	asked := r.URL.Query().Get("name")
	names, values := map[string]bool{}, map[string][]string{}
	for node, labels := range o.Labels {
		for name, value := range labels {
			names[name] = true
			if name == asked {
				values[value] = append(values[value], node)
			}
		}
	}
	if asked == "" {
		writeJSON(w, r, map[string][]string{"names": append([]string{}, slices.Sorted(maps.Keys(names))...)})
		return
	}
	writeJSON(w, r, map[string]map[string][]string{"values": values})
}

package broken

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/kwok-dra/kwok-dra/test/drivers/file"
)

// round is one request to the API server. It implements http.RoundTripper.
type round func(request *http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (r round) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// breakRequests breaks the requests that write slices.
func breakRequests(broken requests) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		writes := broken(next.RoundTrip)
		return round(func(request *http.Request) (*http.Response, error) {
			if request.Body != nil && strings.Contains(request.URL.Path, "/resourceslices") {
				return writes(request)
			}
			return next.RoundTrip(request)
		})
	}
}

// incompletePool counts one slice more than there is.
func incompletePool(next round) round {
	return func(request *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(request.Body)
		if err = errors.Join(err, request.Body.Close()); err != nil {
			return nil, err
		}
		changed := request.Clone(request.Context())
		changed.Body = io.NopCloser(bytes.NewReader(bytes.ReplaceAll(body, []byte(`"resourceSliceCount":1`), []byte(`"resourceSliceCount":2`))))
		return next(changed)
	}
}

// publishOnce creates a slice once in the life of a process.
func publishOnce(next round) round {
	var created atomic.Bool
	return func(request *http.Request) (*http.Response, error) {
		if request.Method != http.MethodPost {
			return next(request)
		}
		if created.Load() {
			return nil, errors.Join(errors.New("slices are published once"), request.Body.Close())
		}
		response, err := next(request)
		created.Store(err == nil && response.StatusCode == http.StatusCreated)
		return response, err
	}
}

// newGeneration writes a new generation of the slices that an earlier process has published. The
// driver goes on from there.
func newGeneration(ctx context.Context, o *file.Options) error {
	client := o.Client.ResourceV1().ResourceSlices()
	found, err := client.List(ctx, metav1.ListOptions{FieldSelector: fields.Set{
		resourcev1.ResourceSliceSelectorNodeName: o.Node, resourcev1.ResourceSliceSelectorDriver: o.Name,
	}.String()})
	if err != nil {
		return err
	}
	for i := range found.Items {
		found.Items[i].Spec.Pool.Generation++
		if _, err := client.Update(ctx, &found.Items[i], metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

package page

import (
	"context"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kwok-dra/kwok-dra/pkg/access"
	"github.com/kwok-dra/kwok-dra/pkg/why"
)

// explaining answers why a Pod waits. It gives one answer after the other: each has the whole
// cluster in memory. A client has one question at a time, so those of others soon get
// their turn.
type explaining struct {
	ask func(ctx context.Context, namespace, pod string) (*why.Answer, error)

	mu sync.Mutex
	// asking has the clients with a question.
	asking sync.Map
}

// serve serves GET /api/why?namespace=NAMESPACE&pod=POD: why a Pod does not run yet, as
// "kwok-dractl why POD -o json" prints it. The status is 400 without one of both, 404 where
// there is no such Pod, 429 for a client that asks too often or before it has the last
// answer, and 502 where it cannot be said, with the reason as text.
func (e *explaining) serve(w http.ResponseWriter, r *http.Request) {
	namespace, pod := r.FormValue("namespace"), r.FormValue("pod")
	if namespace == "" || pod == "" {
		http.Error(w, "give namespace and pod: /api/why?namespace=NAMESPACE&pod=POD", http.StatusBadRequest)
		return
	}
	client := access.ClientOf(r)
	if _, asks := e.asking.LoadOrStore(client, nil); asks {
		access.TooMany(w, "wait for the last answer before you ask again")
		return
	}
	defer e.asking.Delete(client)
	e.mu.Lock()
	defer e.mu.Unlock()
	answer, err := e.ask(r.Context(), namespace, pod)
	switch {
	case apierrors.IsNotFound(err):
		http.Error(w, err.Error(), http.StatusNotFound)
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadGateway)
	default:
		write(w, r, answer)
	}
}

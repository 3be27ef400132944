package page

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/extensions/access"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/why"
)

// explaining answers why a Pod waits, one question after the other, since each answer needs the
// whole cluster in memory. A client has one question at a time, so others soon get their turn.
type explaining struct {
	ask func(ctx context.Context, pods []types.NamespacedName) ([]*why.Answer, error)

	mu sync.Mutex
	// asking holds the clients with an open question.
	asking sync.Map
}

// serveWhy serves GET /api/why?namespace=NAMESPACE&pod=POD: why a Pod does not run yet, as
// "kwok-dractl why POD -o json" prints it. The status is 400 without one of both, 404 where
// there is no such Pod, 429 for a client that asks too often or before it has the last
// answer, and 502 where it cannot be said, with the reason as text.
func (e *explaining) serveWhy(w http.ResponseWriter, r *http.Request) {
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
	answers, err := e.answerInTurn(r.Context(), []types.NamespacedName{{Namespace: namespace, Name: pod}})
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadGateway)
	case len(answers) == 0:
		http.Error(w, fmt.Sprintf("there is no Pod %s in namespace %s", pod, namespace), http.StatusNotFound)
	default:
		writeJSON(w, r, answers[0])
	}
}

// answerInTurn says why Pods wait, after the questions before it.
func (e *explaining) answerInTurn(ctx context.Context, pods []types.NamespacedName) ([]*why.Answer, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ask(ctx, pods)
}

package access

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

// An answer of the API server is good for a while: a Prometheus that asks every
// few seconds does not cost two requests each time, and a user that loses the
// right is soon shut out. The defaults of the kubelet's webhooks are of this order.
const (
	goodFor     = 10 * time.Second
	mostAnswers = 1024
)

// Guard lets requests through that the API server allows.
type Guard struct {
	client  kubernetes.Interface
	answers *cache.LRUExpireCache
}

// NewGuard makes a Guard that asks by a client, which must be allowed to create
// TokenReviews and SubjectAccessReviews.
func NewGuard(client kubernetes.Interface) *Guard {
	return &Guard{client: client, answers: cache.NewLRUExpireCache(mostAnswers)}
}

// question is what is asked. Of the token only a hash is kept.
type question struct {
	token      [sha256.Size]byte
	verb, path string
}

// answer is the response to a request.
type answer struct {
	status int
	text   string
}

var allowed = answer{status: http.StatusOK}

// Wrap guards a handler. Without a valid token the answer is 401, without the
// right to the path 403, and 500 where the API server cannot be asked.
func (g *Guard) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := g.ask(r.Context(), r)
		if a == allowed {
			next.ServeHTTP(w, r)
			return
		}
		if a.status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
		http.Error(w, a.text, a.status)
	})
}

func (g *Guard) ask(ctx context.Context, r *http.Request) answer {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return answer{http.StatusUnauthorized, "give a token of the cluster: Authorization: Bearer TOKEN"}
	}
	q := question{sha256.Sum256([]byte(token)), strings.ToLower(r.Method), r.URL.Path}
	if known, is := g.answers.Get(q); is {
		return known.(answer)
	}
	a, err := g.review(ctx, token, q)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot ask the API server who may read", "path", q.path)
		return answer{http.StatusInternalServerError, "the API server cannot be asked who may read this"}
	}
	g.answers.Add(q, a, goodFor)
	return a
}

// review asks the API server who has the token, and what that user may do.
func (g *Guard) review(ctx context.Context, token string, q question) (answer, error) {
	who, err := g.client.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token},
	}, metav1.CreateOptions{})
	if err != nil {
		return answer{}, fmt.Errorf("create TokenReview: %w", err)
	}
	if !who.Status.Authenticated {
		return answer{http.StatusUnauthorized, "the API server does not know the token"}, nil
	}
	user := who.Status.User
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	may, err := g.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, Groups: user.Groups, UID: user.UID, Extra: extra,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: q.verb, Path: q.path},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return answer{}, fmt.Errorf("create SubjectAccessReview of user %s: %w", user.Username, err)
	}
	if !may.Status.Allowed {
		return answer{http.StatusForbidden, fmt.Sprintf("user %q cannot %s path %q; a ClusterRole with nonResourceURLs allows it", user.Username, q.verb, q.path)}, nil
	}
	return allowed, nil
}

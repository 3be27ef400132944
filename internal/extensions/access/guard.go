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
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
)

// Answers of the API server are cached for a while, so that a Prometheus that scrapes every few seconds does not cost two
// requests each time. A user who loses the right is soon shut out. The defaults of the kubelet's webhooks are similar.
const (
	answerLifetime = 10 * time.Second
	maxAnswers     = 1024
)

// Limits of requests to the API server: about new tokens from one address and from all, and for each known user. So made-up
// tokens and paths cost the cluster little, and a client that sends them locks nobody else out.
const (
	addressPerSecond      = 5
	addressBurst          = 20
	allAddressesPerSecond = 50
	allAddressesBurst     = 100
	userPerSecond         = 10
	userBurst             = 50
	userLifetime          = 24 * time.Hour
)

// Guard lets through the requests that the API server allows.
type Guard struct {
	client kubernetes.Interface
	// answers are by what was asked, and strangers are the tokens of nobody. They are
	// apart, so that strangers do not push out what is known of users.
	answers, strangers *cache.LRUExpireCache
	// users are the names of users by the tokens that the API server knew when it was last asked.
	users *cache.LRUExpireCache
	// byUser, byAddress and byAllAddresses bound how often the API server is asked: about tokens of known users, and about
	// others.
	byAddress, byUser *Limiter
	byAllAddresses    flowcontrol.PassiveRateLimiter
}

// NewGuard makes a Guard that asks by a client, which must be allowed to create TokenReviews and SubjectAccessReviews.
func NewGuard(client kubernetes.Interface) *Guard {
	return &Guard{
		client:         client,
		answers:        cache.NewLRUExpireCache(maxAnswers),
		strangers:      cache.NewLRUExpireCache(maxAnswers),
		users:          cache.NewLRUExpireCache(maxAnswers),
		byAddress:      NewLimiter(addressPerSecond, addressBurst),
		byAllAddresses: flowcontrol.NewTokenBucketPassiveRateLimiter(allAddressesPerSecond, allAddressesBurst),
		byUser:         NewLimiter(userPerSecond, userBurst),
	}
}

// answer is the response to a request, and the user of its token if it has one.
type answer struct {
	status int
	text   string
	user   string
}

var (
	stranger = answer{status: http.StatusUnauthorized, text: "the API server does not know the token"}
	tooMany  = answer{status: http.StatusTooManyRequests, text: "you ask for too much that the API server has to be asked about: try again later"}
)

// Wrap guards a handler. It answers 401 without a valid token, 403 without the right to the path,
// 429 if a user or an address would cause too many requests to the API server, and 500 if the API
// server cannot be asked.
func (g *Guard) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch a := g.checkRequest(r); a.status {
		case http.StatusOK:
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, a.user)))
		case http.StatusTooManyRequests:
			TooMany(w, a.text)
		case http.StatusUnauthorized:
			w.Header().Set("WWW-Authenticate", "Bearer")
			fallthrough
		default:
			http.Error(w, a.text, a.status)
		}
	})
}

func (g *Guard) checkRequest(r *http.Request) answer {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return answer{status: http.StatusUnauthorized, text: "give a token of the cluster: Authorization: Bearer TOKEN"}
	}
	// Hashes are kept instead of tokens and paths, so the length of what a client sends does not matter.
	verb, path := strings.ToLower(r.Method), r.URL.Path
	who, question := sha256.Sum256([]byte(token)), sha256.Sum256(fmt.Appendf(nil, "%q %q %q", token, verb, path))
	if known, ok := g.answers.Get(question); ok {
		return known.(answer)
	}
	if _, ok := g.strangers.Get(who); ok {
		return stranger
	}
	mayAsk := false // the user is charged, or else the address
	if user, ok := g.users.Get(who); ok {
		mayAsk = g.byUser.Accept(user.(string))
	} else {
		mayAsk = g.byAddress.Accept(addressOf(r)) && g.byAllAddresses.TryAccept()
	}
	if !mayAsk {
		return tooMany
	}
	a, err := g.reviewAccess(r.Context(), token, verb, path)
	switch {
	case err != nil:
		klog.FromContext(r.Context()).Error(err, "Failed to review a token or access", "path", path)
		return answer{status: http.StatusInternalServerError, text: "the API server cannot be asked who may read this"}
	case a == stranger:
		g.users.Remove(who)
		g.strangers.Add(who, nil, answerLifetime)
	default:
		g.users.Add(who, a.user, userLifetime)
		g.answers.Add(question, a, answerLifetime)
	}
	return a
}

// reviewAccess asks the API server who has the token, and whether that user may read the path.
func (g *Guard) reviewAccess(ctx context.Context, token, verb, path string) (answer, error) {
	who, err := g.client.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token},
	}, metav1.CreateOptions{})
	if err != nil {
		return answer{}, fmt.Errorf("create TokenReview: %w", err)
	}
	if !who.Status.Authenticated {
		return stranger, nil
	}
	user := who.Status.User
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	may, err := g.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, Groups: user.Groups, UID: user.UID, Extra: extra,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: verb, Path: path},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return answer{}, fmt.Errorf("create SubjectAccessReview of user %s: %w", user.Username, err)
	}
	if !may.Status.Allowed {
		return answer{http.StatusForbidden, fmt.Sprintf("user %q cannot %s path %q; a ClusterRole with nonResourceURLs allows it", user.Username, verb, path), user.Username}, nil
	}
	return answer{status: http.StatusOK, user: user.Username}, nil
}

package access

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"
)

// cluster is an API server that knows the tokens "good" of a user who may get /metrics, and
// "powerless" of one who may get nothing, each with any number behind it.
type cluster struct {
	asked int
	err   error
}

func (c *cluster) guard() *Guard {
	client := fake.NewClientset()
	client.PrependReactor("create", "tokenreviews", func(action kubetesting.Action) (bool, runtime.Object, error) {
		c.asked++
		review := action.(kubetesting.CreateAction).GetObject().(*authenticationv1.TokenReview)
		if user, known := map[string]string{"good": "jane", "powerless": "eve"}[strings.TrimRight(review.Spec.Token, "0123456789")]; known {
			review.Status.Authenticated = true
			review.Status.User = authenticationv1.UserInfo{Username: user, Groups: []string{"team"}, Extra: map[string]authenticationv1.ExtraValue{"a": {"b"}}}
		}
		return true, review, c.err
	})
	client.PrependReactor("create", "subjectaccessreviews", func(action kubetesting.Action) (bool, runtime.Object, error) {
		review := action.(kubetesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		asked := review.Spec
		review.Status.Allowed = asked.User == "jane" && asked.Groups[0] == "team" && asked.Extra["a"][0] == "b" &&
			*asked.NonResourceAttributes == authorizationv1.NonResourceAttributes{Verb: "get", Path: "/metrics"}
		return true, review, nil
	})
	return NewGuard(client)
}

func request(t *testing.T, g *Guard, method, path, authorization string) *httptest.ResponseRecorder {
	return requestFrom(t, g, "192.0.2.1:1234", method, path, authorization)
}

func requestFrom(t *testing.T, g *Guard, address, method, path, authorization string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
	r.RemoteAddr = address
	r.Header.Set("Authorization", authorization)
	g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("figures")) })).ServeHTTP(w, r)
	return w
}

func TestGuard(t *testing.T) {
	t.Parallel()
	g := (&cluster{}).guard()
	for name, test := range map[string]struct {
		method, path, authorization string
		status                      int
		body                        string
	}{
		"allowed":          {"GET", "/metrics", "Bearer good", 200, "figures"},
		"other spelling":   {"GET", "/metrics", "bearer  good ", 200, "figures"},
		"no token":         {"GET", "/metrics", "", 401, "give a token of the cluster: Authorization: Bearer TOKEN\n"},
		"not a token":      {"GET", "/metrics", "Basic good", 401, "give a token of the cluster: Authorization: Bearer TOKEN\n"},
		"empty token":      {"GET", "/metrics", "Bearer ", 401, "give a token of the cluster: Authorization: Bearer TOKEN\n"},
		"unknown token":    {"GET", "/metrics", "Bearer bad", 401, "the API server does not know the token\n"},
		"not allowed":      {"GET", "/", "Bearer good", 403, "user \"jane\" cannot get path \"/\"; a ClusterRole with nonResourceURLs allows it\n"},
		"not allowed verb": {"POST", "/metrics", "Bearer good", 403, "user \"jane\" cannot post path \"/metrics\"; a ClusterRole with nonResourceURLs allows it\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := request(t, g, test.method, test.path, test.authorization)
			require.Equal(t, test.status, w.Code)
			require.Equal(t, test.body, w.Body.String())
			require.Equal(t, test.status == 401, w.Header().Get("WWW-Authenticate") == "Bearer")
		})
	}
}

// TestGuardRemembers asks once in a while only, and never remembers a failure.
func TestGuardRemembers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{}
		g := c.guard()
		for range 5 {
			require.Equal(t, 200, request(t, g, "GET", "/metrics", "Bearer good").Code)
		}
		require.Equal(t, 1, c.asked)
		require.Equal(t, 403, request(t, g, "GET", "/", "Bearer good").Code, "another path is another question")
		require.Equal(t, 2, c.asked)
		time.Sleep(answerLifetime + time.Nanosecond) // of the bubble's clock
		c.err = errors.New("etcd is away")
		w := request(t, g, "GET", "/metrics", "Bearer good")
		require.Equal(t, 500, w.Code)
		require.Equal(t, "the API server cannot be asked who may read this\n", w.Body.String())
		c.err = nil
		require.Equal(t, 200, request(t, g, "GET", "/metrics", "Bearer good").Code)
	})
}

// TestGuardBoundsWhatStrangersCost: made-up tokens cost the API server a few
// reviews per second, however many they are, and shut out no user that was known
// before, also when the user's answer is out of date.
func TestGuardBoundsWhatStrangersCost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{}
		g := c.guard()
		require.Equal(t, 200, request(t, g, "GET", "/metrics", "Bearer good").Code)
		const floods = 4
		for flood := range floods {
			for i := range 2 * maxAnswers {
				w := request(t, g, "GET", "/metrics", fmt.Sprintf("Bearer made-up-%d-%d", flood, i))
				if w.Code != 401 {
					require.Equal(t, 429, w.Code)
					require.Equal(t, "1", w.Header().Get("Retry-After"))
				}
			}
			require.Equal(t, 200, request(t, g, "GET", "/metrics", "Bearer good").Code)
			time.Sleep(answerLifetime + time.Nanosecond) // of the bubble's clock
		}
		require.Equal(t, floods*addressBurst+floods-1, c.asked, "the user too was new once")
		require.LessOrEqual(t, len(g.strangers.Keys()), maxAnswers)
		require.Len(t, g.users.Keys(), 1)
	})
}

// TestGuardAsksOnceAboutAStranger, whatever is asked for.
func TestGuardAsksOnceAboutAStranger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{}
		g := c.guard()
		for i := range 100 {
			require.Equal(t, 401, request(t, g, "GET", fmt.Sprint("/", i), "Bearer bad").Code)
		}
		require.Equal(t, 1, c.asked)
		time.Sleep(answerLifetime + time.Nanosecond) // of the bubble's clock
		require.Equal(t, 401, request(t, g, "GET", "/", "Bearer bad").Code)
		require.Equal(t, 2, c.asked)
	})
}

// TestGuardBoundsWhatAUserCosts: a user may ask for many paths.
func TestGuardBoundsWhatAUserCosts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{}
		g := c.guard()
		for i := range 1000 {
			request(t, g, "GET", fmt.Sprint("/", i), "Bearer good")
		}
		require.Equal(t, 1+userBurst, c.asked)
	})
}

// TestGuardShutsNobodyOut: whoever asks for too much is the only one who is shut out, and
// costs the API server little.
func TestGuardShutsNobodyOut(t *testing.T) {
	t.Parallel()
	for name, flood := range map[string]func(i int) (address, path, token string){
		"made-up paths":      func(i int) (string, string, string) { return "192.0.2.9:1", fmt.Sprint("/", i), "powerless" },
		"tokens of one user": func(i int) (string, string, string) { return "192.0.2.9:1", "/metrics", fmt.Sprint("powerless", i) },
		"made-up tokens": func(i int) (string, string, string) {
			return fmt.Sprint("192.0.2.9:", i), "/metrics", fmt.Sprint("bad", i)
		},
		"addresses of one net": func(i int) (string, string, string) {
			return fmt.Sprintf("[2001:db8::%x]:1", i), "/metrics", fmt.Sprint("bad", i)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := &cluster{}
				g := c.guard()
				const floods, requests = 10, 15 * 100
				for i := range floods {
					for k := range requests {
						address, path, token := flood(i*requests + k)
						requestFrom(t, g, address, "GET", path, "Bearer "+token)
						time.Sleep(time.Second / 100) // of the bubble's clock
					}
					require.Equal(t, 200, request(t, g, "GET", "/metrics", "Bearer good").Code, "a user who asks every 15 s")
					require.Equal(t, 200, request(t, g, "GET", "/metrics", fmt.Sprint("Bearer good", i)).Code, "one who has a new token")
				}
				require.LessOrEqual(t, c.asked, floods*(2+15*userPerSecond)+userBurst)
			})
		})
	}
}

// TestLimiter: each client has a budget of its own, and there is no end to clients.
func TestLimiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(1, 2)
		for range 2 {
			require.True(t, l.Accept("a"))
		}
		require.False(t, l.Accept("a"))
		require.True(t, l.Accept("b"))
		time.Sleep(time.Second) // of the bubble's clock
		require.True(t, l.Accept("a"))
		require.False(t, l.Accept("a"))
		for i := range 2 * maxClients {
			l.Accept(fmt.Sprint(i))
		}
		require.LessOrEqual(t, len(l.budgets.Keys()), maxClients)
	})
}

// TestClientOf: a user counts by the name, and a stranger by the address.
func TestClientOf(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"192.0.2.1:1234":           "address 192.0.2.1",
		"[::ffff:192.0.2.1]:1234":  "address 192.0.2.1",
		"[2001:db8::1:2:3:4]:1234": "network 2001:db8::/64",
		"[fe80::1%eth0]:1":         "network fe80::/64",
		"pipe":                     "address pipe",
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		r.RemoteAddr = address
		require.Equal(t, want, ClientOf(r))
	}
	var client string
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody)
	r.Header.Set("Authorization", "Bearer good")
	(&cluster{}).guard().Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { client = ClientOf(r) })).ServeHTTP(httptest.NewRecorder(), r)
	require.Equal(t, "user jane", client)
}

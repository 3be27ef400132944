package access

import (
	"net/http"
	"net/netip"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/util/flowcontrol"
)

const (
	// maxClients bounds the clients that a Limiter remembers. A forgotten client has its whole budget again.
	maxClients = 4096
	// clientLifetime is how long a client without requests is remembered, which is longer than any budget takes to fill.
	clientLifetime = time.Minute
)

// Limiter bounds the requests of each client, so that none takes what others need.
type Limiter struct {
	perSecond float32
	burst     int

	mu sync.Mutex
	// budgets are rate limiters by client.
	budgets *cache.LRUExpireCache
}

// NewLimiter allows each client perSecond requests per second, and burst at once.
func NewLimiter(perSecond float32, burst int) *Limiter {
	return &Limiter{perSecond: perSecond, burst: burst, budgets: cache.NewLRUExpireCache(maxClients)}
}

// Accept reports whether a client may ask now, and charges it.
func (l *Limiter) Accept(client string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	budget, known := l.budgets.Get(client)
	if !known {
		budget = flowcontrol.NewTokenBucketPassiveRateLimiter(l.perSecond, l.burst)
	}
	l.budgets.Add(client, budget, clientLifetime)
	return budget.(flowcontrol.PassiveRateLimiter).TryAccept()
}

// Wrap answers 429 to clients that ask the handler too often.
func (l *Limiter) Wrap(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !l.Accept(ClientOf(r)) {
			TooMany(w, "you ask too often: try again later")
			return
		}
		next(w, r)
	}
}

// TooMany answers 429.
func TooMany(w http.ResponseWriter, text string) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, text, http.StatusTooManyRequests)
}

// userKey is the key of a request's user in its context.
type userKey struct{}

// ClientOf names the client that has sent a request: a user if a Guard has let the request through, or else an address.
func ClientOf(r *http.Request) string {
	if user, ok := r.Context().Value(userKey{}).(string); ok {
		return "user " + user
	}
	return addressOf(r)
}

// addressOf returns the client's address. Of an IPv6 address it returns the network, since a client has all addresses of it.
func addressOf(r *http.Request) string {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return "address " + r.RemoteAddr
	}
	address := from.Addr().Unmap().WithZone("")
	if address.Is6() {
		network, _ := address.Prefix(64) // an IPv6 address is longer
		return "network " + network.String()
	}
	return "address " + address.String()
}

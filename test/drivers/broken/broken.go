// Package broken has ways to break a good DRA driver, each of which contradicts one thing that
// kubelets expect of drivers.
package broken

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kwok-dra/kwok-dra/test/drivers/file"
)

// The ways to break a driver.
const (
	// IncompletePool announces a slice that there is not.
	IncompletePool = "incomplete-pool"
	// ForeignDevice prepares a device that is not allocated.
	ForeignDevice = "foreign-device"
	// PrepareOnce fails to prepare what is prepared.
	PrepareOnce = "prepare-once"
	// UnknownClaim fails to unprepare what was never prepared.
	UnknownClaim = "unknown-claim"
	// LeaveSpec does not remove CDI specs.
	LeaveSpec = "leave-spec"
	// NewGeneration publishes all again at each start.
	NewGeneration = "new-generation"
	// Forget knows nothing of what earlier processes have prepared.
	Forget = "forget"
	// OldAnswers answers for what earlier processes have prepared without preparing it again.
	OldAnswers = "old-answers"
	// Careless prepares a device for two claims.
	Careless = "careless"
	// PublishOnce does not publish slices again.
	PublishOnce = "publish-once"
)

// calls breaks the calls of a plugin.
type calls func(o *file.Options) grpc.UnaryServerInterceptor

// requests breaks the requests to the API server.
type requests func(next round) round

var (
	byCalls = map[string]calls{
		ForeignDevice: foreignDevice, PrepareOnce: prepareOnce, UnknownClaim: unknownClaim, LeaveSpec: leaveSpec, Forget: refuseKeptClaims,
		OldAnswers: oldAnswers,
	}
	byRequests = map[string]requests{IncompletePool: incompletePool, PublishOnce: publishOnce}
)

// Modes are all ways to break a driver.
func Modes() []string {
	return slices.Sorted(maps.Keys(map[string]bool{
		IncompletePool: true, ForeignDevice: true, PrepareOnce: true, UnknownClaim: true, LeaveSpec: true, NewGeneration: true, Forget: true, PublishOnce: true,
		OldAnswers: true, Careless: true,
	}))
}

// Break has the options be those of a broken driver. It replaces the client by one of the
// configuration.
func Break(ctx context.Context, mode string, config *rest.Config, o *file.Options) error {
	if !slices.Contains(Modes(), mode) {
		return fmt.Errorf("break the driver by %q: it is one of %s", mode, strings.Join(Modes(), ", "))
	}
	if intercept, ok := byCalls[mode]; ok {
		o.Intercept = intercept(o)
		return nil
	}
	switch mode {
	case NewGeneration:
		return newGeneration(ctx, o)
	case Careless:
		o.Exclusive = false
		return nil
	}
	config = rest.CopyConfig(config)
	config.ContentType = "application/json"
	config.Wrap(breakRequests(byRequests[mode]))
	var err error
	o.Client, err = kubernetes.NewForConfig(config)
	return err
}

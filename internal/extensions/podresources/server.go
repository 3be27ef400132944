package podresources

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	podresourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

const (
	// callsPerSecond and burst are DefaultQPS and DefaultBurstTokens in pkg/kubelet/apis/podresources.
	callsPerSecond = 100
	burst          = 10
	// maxCalls bounds the calls of one connection that run at a time, maxRequest the bytes of a request, and handshakeTimeout
	// and idleTimeout the time of a client that says nothing.
	maxCalls         = 8
	maxRequest       = 64 << 10
	handshakeTimeout = 5 * time.Second
	idleTimeout      = 5 * time.Minute
	// retryInterval is how long a node waits after its socket could not be made.
	retryInterval = 10 * time.Second
)

// Server answers on the sockets of nodes.
type Server struct {
	pods cache.SharedIndexInformer
	// preparedOn returns what is prepared on a node.
	preparedOn func(node string) Prepared
}

// New makes a Server. Run has to run while nodes are served.
func New(client kubernetes.Interface, preparedOn func(node string) Prepared) *Server {
	return &Server{pods: newPods(client), preparedOn: preparedOn}
}

// Run watches Pods until ctx ends.
func (s *Server) Run(ctx context.Context) { s.pods.RunWithContext(ctx) }

// ServeNode answers at pod-resources/kubelet.sock below the folder of a node, until ctx ends.
func (s *Server) ServeNode(ctx context.Context, node, folder string) {
	lastFailure := ""
	for ctx.Err() == nil {
		err := s.serve(ctx, node, folder)
		if err != nil && err.Error() != lastFailure {
			lastFailure = err.Error()
			klog.FromContext(ctx).Error(err, "Failed to serve PodResources; retrying")
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryInterval):
		}
	}
}

// serve answers until ctx ends, or the socket fails.
func (s *Server) serve(ctx context.Context, node, folder string) error {
	socket, err := listenBelow(folder)
	if err != nil {
		return err
	}
	limiter := rate.NewLimiter(callsPerSecond, burst)
	server := grpc.NewServer(
		grpc.MaxConcurrentStreams(maxCalls), grpc.MaxRecvMsgSize(maxRequest), grpc.ConnectionTimeout(handshakeTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idleTimeout}),
		grpc.UnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			if !limiter.Allow() {
				return nil, status.Error(codes.ResourceExhausted, "rejected by rate limit")
			}
			return handler(ctx, request)
		}),
	)
	podresourcesv1.RegisterPodResourcesListerServer(server, &nodeServer{Server: s, node: node})
	defer context.AfterFunc(ctx, server.Stop)()
	if err := server.Serve(socket); err != nil && !errors.Is(err, grpc.ErrServerStopped) && ctx.Err() == nil {
		return fmt.Errorf("serve %s: %w", socket.path, err)
	}
	return nil
}

// nodeServer answers for one node.
type nodeServer struct {
	podresourcesv1.UnimplementedPodResourcesListerServer
	*Server

	node string
}

// List answers for the Pods of the node that have not ended, with what is prepared now.
func (n *nodeServer) List(ctx context.Context, _ *podresourcesv1.ListPodResourcesRequest) (*podresourcesv1.ListPodResourcesResponse, error) {
	if err := n.awaitPods(ctx); err != nil {
		return nil, err
	}
	answer, prepared := &podresourcesv1.ListPodResourcesResponse{}, n.preparedOn(n.node)
	for _, pod := range podsOn(n.pods, n.node) {
		if !facts.IsTerminal(pod) {
			answer.PodResources = append(answer.PodResources, resourcesOf(pod, prepared))
		}
	}
	return answer, nil
}

// Get answers for one Pod of the node, even if it has ended.
func (n *nodeServer) Get(ctx context.Context, request *podresourcesv1.GetPodResourcesRequest) (*podresourcesv1.GetPodResourcesResponse, error) {
	if err := n.awaitPods(ctx); err != nil {
		return nil, err
	}
	object, exists, err := n.pods.GetIndexer().GetByKey(cache.NewObjectName(request.PodNamespace, request.PodName).String())
	if err != nil || !exists || object.(*corev1.Pod).Spec.NodeName != n.node {
		return nil, fmt.Errorf("pod %s in namespace %s not found", request.PodName, request.PodNamespace)
	}
	return &podresourcesv1.GetPodResourcesResponse{PodResources: resourcesOf(object.(*corev1.Pod), n.preparedOn(n.node))}, nil
}

// GetAllocatableResources answers as a kubelet without device plugins, and with no policy for CPUs and memory: there are none.
func (n *nodeServer) GetAllocatableResources(context.Context, *podresourcesv1.AllocatableResourcesRequest) (*podresourcesv1.AllocatableResourcesResponse, error) {
	return &podresourcesv1.AllocatableResourcesResponse{}, nil
}

// awaitPods waits for the Pods to be known: an agent must not take a node for empty after a restart.
func (n *nodeServer) awaitPods(ctx context.Context) error {
	select {
	case <-n.pods.HasSyncedChecker().Done():
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

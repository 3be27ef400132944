package kwokdratest

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	nodeheartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	kwokpodfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	"sigs.k8s.io/kwok/pkg/client/clientset/versioned"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/client"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/internal/util/strict"
	podfast "github.com/kwok-dra/kwok-dra/stages/pod/fast"
)

// fastStages are kwok's default Stages, but for pod-ready, which waits for claims.
var fastStages = []string{
	nodefast.DefaultNodeInit, nodeheartbeat.DefaultNodeHeartbeatWithLease,
	podfast.PodReady, kwokpodfast.DefaultPodComplete, kwokpodfast.DefaultPodDelete,
}

var errKind = errors.New("must be a Stage of kwok.x-k8s.io/v1alpha1")

// leaseSeconds is how long a node's lease is valid, as in kwok's own configuration.
const leaseSeconds = 40

// startKwok runs kwok's controller.
func (f *fleet) startKwok(ctx context.Context) error {
	config, err := f.kwokConfig()
	if err != nil {
		return fmt.Errorf("start kwok: %w", err)
	}
	controller, err := controllers.NewController(*config)
	if err != nil {
		return fmt.Errorf("start kwok: %w", err)
	}
	ctx = log.NewContext(ctx, log.NewLogger(f.output, log.LevelWarn))
	if err := controller.Start(ctx); err != nil {
		return fmt.Errorf("start kwok: %w", err)
	}
	return nil
}

// kwokConfig is as kwok's command makes it by default.
func (f *fleet) kwokConfig() (*controllers.Config, error) {
	stages, err := f.stages()
	if err != nil {
		return nil, err
	}
	clients, err := client.NewClientset("", f.kubeconfig)
	if err != nil {
		return nil, err
	}
	found, err := clients.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	id, err := controllers.Identity()
	if err != nil {
		return nil, err
	}
	config := &controllers.Config{
		Clock: clock.RealClock{}, ID: id, CIDR: "10.0.0.1/24", NodeIP: "10.0.0.1", NodePort: 10247, LocalStages: stages,
		ManageNodesWithAnnotationSelector: lifecycle.DefaultAnnotationSelector,
		PodPlayStageParallelism:           4, NodePlayStageParallelism: 4, NodeLeaseParallelism: 4, PodsOnNodeSyncParallelism: 4,
		NodeLeaseDurationSeconds:   leaseSeconds,
		ImpersonatingDynamicClient: clients.ToImpersonatingDynamicClient(), ImpersonatingTypedClient: clients.ToImpersonatingTypedClient(),
	}
	return config, f.kwokClients(config, clients, found)
}

func (f *fleet) kwokClients(config *controllers.Config, clients client.Clientset, found *rest.Config) error {
	var err error
	if config.DynamicClient, err = clients.ToDynamicClient(); err != nil {
		return err
	}
	if config.RESTMapper, err = clients.ToRESTMapper(); err != nil {
		return err
	}
	if config.RESTClient, err = rest.RESTClientFor(found); err != nil {
		return err
	}
	if config.TypedClient, err = kubernetes.NewForConfig(found); err != nil {
		return err
	}
	config.TypedKwokClient, err = versioned.NewForConfig(found)
	return err
}

// stages are the Stages by the kind that they are of.
func (f *fleet) stages() (map[internalversion.StageResourceRef][]*internalversion.Stage, error) {
	texts := f.options.Stages
	if len(texts) == 0 {
		texts = fastStages
	}
	stages := map[internalversion.StageResourceRef][]*internalversion.Stage{}
	for i, text := range texts {
		if documents := strict.Split([]byte(text)); len(documents) > 1 {
			return nil, fmt.Errorf("decode Stages[%d]: it has %d documents: give each Stage alone", i, len(documents))
		}
		var given v1alpha1.Stage
		if err := yaml.UnmarshalStrict([]byte(text), &given); err != nil {
			return nil, fmt.Errorf("decode Stages[%d]: %w", i, err)
		}
		if kind := given.GroupVersionKind(); kind != v1alpha1.GroupVersion.WithKind(v1alpha1.StageKind) {
			return nil, fmt.Errorf("decode Stages[%d]: it is a %s of %s: %w", i, given.Kind, given.APIVersion, errKind)
		}
		stage, err := internalversion.ConvertToInternalStage(&given)
		if err != nil {
			return nil, fmt.Errorf("convert Stage %s: %w", given.Name, err)
		}
		of := stage.Spec.ResourceRef
		stages[of] = append(stages[of], stage)
	}
	return stages, nil
}

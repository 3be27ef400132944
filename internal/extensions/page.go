package extensions

import (
	"context"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/app"
	"github.com/kwok-dra/kwok-dra/internal/extensions/webpage/page"
)

// servePage serves the page at all paths that nothing else serves.
func servePage(devices *deviceInventory, explanations *explanations) app.Extension {
	return app.Extension{Start: func(core *app.Core) {
		served := page.New(page.Options{
			Source: devices.source,
			Labels: core.Caches.Nodes.Labels,
			Slice: func(ctx context.Context, name string) (*resourcev1.ResourceSlice, error) {
				return core.Client.ResourceV1().ResourceSlices().Get(ctx, name, metav1.GetOptions{})
			},
			Waiting: func(ctx context.Context) ([]page.WaitingPod, error) {
				return listWaitingPods(ctx, core.Client, core.Preparer)
			},
			Why: explanations.answerPods,
		})
		core.Handle("/", served)
		if core.IsServing {
			core.Add(app.Part{Run: served.Run, WhenReady: true})
		}
	}}
}

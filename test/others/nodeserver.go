package main

import (
	"context"
	"path/filepath"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

const nodeServer = "node-server"

// startNodeServer has kubectl exec and kubectl port-forward work for Pods of drivers, in front of kwok, and
// returns the log.
func startNodeServer(ctx context.Context, w *world) (logs map[string]string, err error) {
	program := filepath.Join(w.Logs(), nodeServer)
	if err := sidecar.Build(filepath.Join(sidecar.Root(), "test"), program, "./drivers/cmd/"+nodeServer); err != nil {
		return nil, err
	}
	port, err := w.Kubectl(ctx, "get", "nodes", "-o", "jsonpath={.items[0].status.daemonEndpoints.kubeletEndpoint.Port}")
	if err != nil {
		return nil, err
	}
	err = w.AddComponent(nodeServer, program, "-plugins-dir", w.plugins, "-kwok", "https://127.0.0.1:"+port)
	return map[string]string{nodeServer + ".log": filepath.Join(w.Logs(), nodeServer+".log")}, err
}

package plugin

import (
	"context"
	"fmt"

	registrationv1 "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// DriverAt asks the plugin behind a socket for the name of its driver, as a kubelet does before it registers the plugin.
// DriverAt does not register it.
func DriverAt(ctx context.Context, socket string) (string, error) {
	conn, err := dialSocket(ctx, socket)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }() // all answers have been received
	info, err := getInfo(ctx, registrationv1.NewRegistrationClient(conn))
	if err != nil {
		return "", fmt.Errorf("ask the plugin at socket %s for its driver: %w", socket, err)
	}
	return info.GetName(), nil
}

package nodeload

import (
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/transport"
)

const (
	// DriverNamespace is the namespace of the ServiceAccounts of drivers, each named as its driver. Neither has to exist
	// for impersonation; the rights of drivers are bound to the group of all ServiceAccounts of the namespace.
	DriverNamespace = "kwok-dra-drivers"

	nodesGroup = "system:nodes"
	// nodeNameExtra says in the identity of a Pod to which node its token is bound.
	nodeNameExtra = "authentication.kubernetes.io/node-name"

	kubeletComponent = "kubelet"
	driverComponent  = "driver"
)

// limits are those of a client-go client: requests per second, and how many at once.
type limits struct {
	perSecond float64
	burst     int
}

var (
	// kubeletLimits are kubeAPIQPS and kubeAPIBurst of a KubeletConfiguration by default, driverLimits the defaults of
	// client-go.
	kubeletLimits = limits{50, 100}
	driverLimits  = limits{5, 10}
)

// identity is who a request comes from.
type identity struct {
	// component is kubelet or driver.
	component string
	limits    limits
	// isProtobuf says that answers come as protobuf, otherwise as JSON.
	isProtobuf bool
	header     http.Header
}

// platform is how client-go ends a user agent.
const platform = " (linux/amd64) kubernetes/"

// kubeletOf is the identity of a node's kubelet of that version.
func kubeletOf(node string, version serverVersion) identity {
	return identity{component: kubeletComponent, limits: kubeletLimits, isProtobuf: true, header: http.Header{
		transport.ImpersonateUserHeader:  {"system:node:" + node},
		transport.ImpersonateGroupHeader: {nodesGroup},
		"User-Agent":                     {"kubelet/" + version.text + platform + version.commit},
		"Accept":                         {runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON},
	}}
}

// driverOf is the identity of a driver on a node, whose token is bound to the node. The API server adds the groups.
func driverOf(driver, node string) identity {
	return identity{component: driverComponent, limits: driverLimits, header: http.Header{
		transport.ImpersonateUserHeader:                                            {"system:serviceaccount:" + DriverNamespace + ":" + driver},
		transport.ImpersonateUserExtraHeaderPrefix + url.PathEscape(nodeNameExtra): {node},
		"User-Agent": {driver + "/v0.0.0" + platform + "$Format"},
		"Accept":     {runtime.ContentTypeJSON + ", */*"},
	}}
}

// Package checkautoscaler is the command kwok-dractl check-autoscaler, a contract test of autoscalers that make nodes for
// Pods with claims. It plays stories of Pods that come and go, watches which nodes the autoscaler makes and removes, and
// judges that by the groups of nodes that the user describes.
package checkautoscaler
